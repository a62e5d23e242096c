-- Lists of trades.

-- name: find_before
-- The highest serial number up to a text, of rows in conflict or of others.
SELECT serial_no FROM trade_lock FORCE INDEX (serial)
WHERE conflict = :conflict AND parked IS NULL AND serial_no <= :serial_no
ORDER BY conflict DESC, serial_no DESC
LIMIT 1

-- name: list_behind_condition
-- What a list by a name ends with: the highest serial number first, after the named row.
(serial_no < :after_serial OR (serial_no = :after_serial
    AND (cust_no < :after_cust OR (cust_no = :after_cust AND op_code < :after_op))))
ORDER BY serial_no DESC, cust_no DESC, op_code DESC
LIMIT :most

-- name: list_amount
-- A page of the trades of one amount in one currency, the latest first, after the named one.
SELECT /*include list_columns*/,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) AS place_us, currency AS place_text
FROM trade_lock FORCE INDEX (amount)
WHERE currency = :currency AND amount_minor = :amount
    AND /*include list_made_condition*/

-- name: list_batch
-- A page of the trades of one batch, the highest serial number first, after the named one.
SELECT /*include list_columns*/, 0 AS place_us, '' AS place_text
FROM trade_lock FORCE INDEX (batch)
WHERE batch = :batch AND /*include list_behind_condition*/

-- name: list_columns
-- The columns of every page of a list (admin/statements.h), before those that say where a row
-- stands.  `passes`: whether the row as it is passes the filter, of which '', 0 and -1 stand for
-- whatever is not asked for; and whether it was there at the moment that is asked for.
-- If the revisions of its first and last step are not neighbours, steps between them may be of the
-- log UUID.
cust_no, serial_no, op_code, status, rev,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', logged_at) AS logged_us,
    ((:cust = '' OR cust_no = :cust) AND (:op = '' OR op_code IN (:op, :retry_op))
        AND (:lane = '' OR lane = :lane) AND (:status = '' OR status = :status)
        AND (:channel = '' OR channel = :channel) AND (:batch = '' OR batch = :batch)
        AND (:channel_ref = '' OR channel_ref = :channel_ref)
        AND (:log_no = '' OR log_no = :log_no OR first_log_no = :log_no
            OR (rev <= first_rev + 1) IS NOT TRUE)
        AND (:amount_over < 0 OR amount_minor > :amount_over)
        AND created_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :since_us MICROSECOND
        AND created_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :until_us MICROSECOND
        AND (:as_of_us = 0 OR first_logged_at <= CAST('1970-01-01' AS DATETIME(6))
            + INTERVAL :as_of_us MICROSECOND)
        AND (:older_ms = 0
            OR created_at <= UTC_TIMESTAMP(6) - INTERVAL :older_ms * 1000 MICROSECOND)
        AND (:idle_ms = 0
            OR updated_at <= UTC_TIMESTAMP(6) - INTERVAL :idle_ms * 1000 MICROSECOND)) IS TRUE
    AS passes

-- name: list_currency
-- The next currency in which a trade has an amount; NULL: there is none.
SELECT MIN(currency) FROM trade_lock FORCE INDEX (amount) WHERE currency > :currency

-- name: list_customer
-- A page of one customer's rows, the highest serial number first, after the named row.
SELECT /*include list_columns*/, 0 AS place_us, '' AS place_text
FROM trade_lock
WHERE cust_no = :after_cust AND (serial_no < :after_serial OR (serial_no = :after_serial
    AND op_code < :after_op))
ORDER BY cust_no DESC, serial_no DESC, op_code DESC
LIMIT :most

-- name: list_doubt
-- Until which moment the hold of a row in doubt may be over for the index, in microseconds: it says
-- so at most five seconds later than the row (ask.sql).  NULL, at any moment, while a session is
-- ended and not all that it held is opened.
SELECT IF(COUNT(*) = 0,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6) + INTERVAL 5 SECOND), NULL)
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NOT NULL

-- name: list_due
-- A page of one operation's rows that have a next moment, the first first: the end of max_hold for
-- sync rows, also finished ones; the next attempt for retry rows.  It starts after the named row
-- and ends before a moment, in microseconds.  after_text is the session of the named row, '' where
-- it has none.
SELECT /*include list_columns*/,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at) AS place_us,
    COALESCE(CAST(session_id AS CHAR), '') AS place_text
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :due_op
    AND next_run_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :end_us MICROSECOND
    AND (next_run_at > CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
        OR IF(:after_text = '', session_id IS NOT NULL OR cust_no > :after_cust
                OR (cust_no = :after_cust AND serial_no > :after_serial),
            session_id > :after_text OR (session_id = :after_text
                AND (cust_no > :after_cust
                    OR (cust_no = :after_cust AND serial_no > :after_serial)))))
ORDER BY op_code, next_run_at, session_id, cust_no, serial_no
LIMIT :most

-- name: list_held
-- A page of one operation's rows that have a holder and no next moment: locks without a retry lane,
-- and retry rows of compensating attempts that run now.
SELECT /*include list_columns*/, 0 AS place_us, session_id AS place_text
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :due_op AND next_run_at IS NULL AND session_id >= :after_text
    AND (session_id > :after_text OR cust_no > :after_cust
        OR (cust_no = :after_cust AND serial_no > :after_serial))
ORDER BY session_id, cust_no, serial_no
LIMIT :most

-- name: list_idle
-- A page of one operation's rows that have neither a holder nor a next moment: finished repeatable
-- trades, closed retry rows, trades that evidence or operators ended, and sync rows whose retry row
-- says what happens next.  The index ends with the primary key, so a page starts after the last
-- customer and serial number of the one before.  The order does not name the columns that are NULL
-- here: with them the server would sort.
SELECT /*include list_columns*/, 0 AS place_us, '' AS place_text
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :due_op AND next_run_at IS NULL AND session_id IS NULL
    AND (cust_no > :after_cust OR (cust_no = :after_cust AND serial_no > :after_serial))
ORDER BY cust_no, serial_no
LIMIT :most

-- name: list_made
-- A page of the rows that were made since a moment, the latest first, after the named one.
SELECT /*include list_columns*/,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) AS place_us, '' AS place_text
FROM trade_lock FORCE INDEX (made)
WHERE /*include list_made_condition*/

-- name: list_label
-- As list_ref, by what people call the trade.
SELECT /*include list_columns*/, 0 AS place_us, '' AS place_text
FROM trade_lock FORCE INDEX (label)
WHERE label = :label AND /*include list_behind_condition*/

-- name: list_made_condition
-- What a list by the moment of the ask ends with: the latest first, after the named row.
created_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :since_us MICROSECOND
    AND created_at <= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
    AND (created_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
        OR cust_no < :after_cust OR (cust_no = :after_cust
            AND (serial_no < :after_serial OR (serial_no = :after_serial
                AND op_code < :after_op))))
ORDER BY created_at DESC, cust_no DESC, serial_no DESC, op_code DESC
LIMIT :most

-- name: list_parked
-- A page of the parked rows whose serial numbers lie between two, by reason, the highest number of
-- each first, from the row after the named one on.
SELECT /*include list_columns*/, 0 AS place_us, parked AS place_text
FROM trade_lock FORCE INDEX (serial)
WHERE conflict = :conflict AND parked IS NOT NULL
    AND serial_no >= :first_serial AND serial_no <= :last_serial
    AND (parked < :after_text OR (parked = :after_text
        AND (serial_no < :after_serial OR (serial_no = :after_serial
            AND (cust_no < :after_cust OR (cust_no = :after_cust AND op_code < :after_op))))))
ORDER BY conflict DESC, parked DESC, serial_no DESC, cust_no DESC, op_code DESC
LIMIT :most

-- name: list_recent
-- A page of one operation's rows that have a next moment, the latest first, from the row after the
-- named one back to a moment.  A finished trade keeps the end of its last hold, so these are the
-- trades in the order in which they were last asked for or claimed.  after_text is the session of
-- the named row, '' where it has none.
SELECT /*include list_columns*/,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at) AS place_us,
    COALESCE(CAST(session_id AS CHAR), '') AS place_text
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :due_op
    AND next_run_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :from_us MICROSECOND
    AND next_run_at <= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
    AND (next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
        OR IF(:after_text = '', session_id IS NULL AND (cust_no < :after_cust
                OR (cust_no = :after_cust AND serial_no < :after_serial)),
            session_id IS NULL OR session_id < :after_text OR (session_id = :after_text
                AND (cust_no < :after_cust
                    OR (cust_no = :after_cust AND serial_no < :after_serial)))))
ORDER BY op_code DESC, next_run_at DESC, session_id DESC, cust_no DESC, serial_no DESC
LIMIT :most

-- name: list_ref
-- A page of the trades that the channel calls so, the highest serial number first, after the named
-- one.  A reference is one trade's as a rule; nothing says that it must be.  The order does not name
-- the reference: with it the server would sort.
SELECT /*include list_columns*/, 0 AS place_us, '' AS place_text
FROM trade_lock FORCE INDEX (channel_ref)
WHERE channel_ref = :channel_ref AND /*include list_behind_condition*/

-- name: list_serial
-- A page of the rows that are in conflict, or of those that are not, whose serial numbers lie
-- between two: the highest number first, from the row after the named one on.  Parked rows have a
-- list of their own (list_parked).  The order does not name the columns that are NULL here or
-- given: with the first the server would sort.
SELECT /*include list_columns*/, 0 AS place_us, '' AS place_text
FROM trade_lock FORCE INDEX (serial)
WHERE conflict = :conflict AND parked IS NULL
    AND serial_no >= :first_serial AND serial_no <= :last_serial
    AND (serial_no < :after_serial OR (serial_no = :after_serial
        AND (cust_no < :after_cust OR (cust_no = :after_cust AND op_code < :after_op))))
ORDER BY conflict DESC, serial_no DESC, cust_no DESC, op_code DESC
LIMIT :most

-- name: list_trace
-- A page of the trades of one W3C trace, by the contexts of their asks, after the named one.
SELECT /*include list_columns*/, 0 AS place_us, traceparent AS place_text
FROM trade_lock FORCE INDEX (trace)
WHERE traceparent >= CONCAT('00-', :trace, '-') AND traceparent < CONCAT('00-', :trace, '.')
    AND (traceparent < :after_text OR (traceparent = :after_text
        AND (serial_no < :after_serial OR (serial_no = :after_serial
            AND (cust_no < :after_cust OR (cust_no = :after_cust AND op_code < :after_op))))))
ORDER BY traceparent DESC, serial_no DESC, cust_no DESC, op_code DESC
LIMIT :most

-- name: list_views
-- As view_by_key, for the rows of a page that are shown.  A row that is gone meanwhile is left
-- out.  A table that seems empty is read whole, without a lock.
SELECT /*include view_columns*/
FROM (SELECT cust_no, serial_no, op_code FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(:cust_no, :serial_no, :op_code)/*)rows*/) k
STRAIGHT_JOIN trade_lock_state USING (cust_no, serial_no, op_code)
