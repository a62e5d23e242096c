-- Trades: claims, the dead, low-water marks, one trade.

-- name: claim_candidates
-- Due work of one operation, oldest first, in the order of the index.  Rows that another worker is
-- claiming are skipped.  The locks last until the claims are committed.  Suspects, during whose
-- last hold the holder died, are claimed apart (claim_suspects).
-- Under load the front of the index is full of entries of what was claimed lately, which the server
-- keeps until it purges them, and has to step over.  So a claim may begin at :from_us, microseconds
-- since 1970, where the one before it found the oldest; 0 is the beginning.
SELECT cust_no, serial_no, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at)
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :retry_op AND next_run_at >= '1970-01-01' + INTERVAL :from_us MICROSECOND
    AND next_run_at <= UTC_TIMESTAMP(6) AND claims = 0
ORDER BY op_code, next_run_at
LIMIT :most
FOR UPDATE SKIP LOCKED

-- name: claim_suspects
-- Suspects, during whose last hold the holder died, among the oldest due work of one operation.
-- The index does not tell them from other rows, so only the first due rows are read, without a
-- lock.  As work is done, later ones move to the front.
SELECT t.cust_no, t.serial_no
FROM (SELECT op_code, cust_no, serial_no
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :retry_op AND next_run_at <= UTC_TIMESTAMP(6)
    ORDER BY op_code, next_run_at
    LIMIT 256) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
WHERE t.claims > 0 AND t.next_run_at <= UTC_TIMESTAMP(6)
LIMIT :most
FOR UPDATE SKIP LOCKED

-- name: customer_busy
-- Which other trade of the customer is in process.
SELECT serial_no, state
FROM trade_lock_state
WHERE cust_no = :cust_no AND op_code = :op_code AND busy = 1

-- name: last_step
-- The last step of a trade's sync row: who did what, and how long ago.
SELECT step, account, fence, TIMESTAMPDIFF(MICROSECOND, updated_at, UTC_TIMESTAMP(6)) AS ago_us
FROM trade_lock
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code

-- name: log_seen
-- Which of these rows have a step that was written under a log UUID: their last, their first, or
-- one of those between.  Needs the right to read history.
SELECT t.cust_no, t.serial_no, t.op_code
FROM (SELECT cust_no, serial_no, op_code FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(:cust_no, :serial_no, :op_code)/*)rows*/) k
STRAIGHT_JOIN trade_lock t FORCE INDEX (PRIMARY) USING (cust_no, serial_no, op_code)
WHERE t.log_no = :log_no OR t.first_log_no = :log_no
    OR EXISTS (SELECT 1 FROM trade_lock_past p
        WHERE p.serial_no = t.serial_no AND p.cust_no = t.cust_no
            AND p.op_code = t.op_code AND p.log_no = :log_no)

-- name: low_water_clear
-- Proves that no row of a stretch is hidden.  It locks each index entry of the stretch for a
-- moment. So a row that an open transaction has written, and that nobody sees yet, answers 1205
-- instead of being missed.  The rows themselves are not locked, so endings, and asks for a finished
-- trade, do not notice.  A step that takes its own entry out of the stretch does notice (a reclaim,
-- an opening, a purge): it is told to try again.
SELECT COUNT(*)
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
    + INTERVAL :from_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
LOCK IN SHARE MODE

-- name: low_water_move
-- Moves the mark of one operation from where it was seen to where the next row in process may be;
-- after a clock jump back, the mark moves back.  Of two janitors one moves it.  A mark that does
-- not exist yet was seen at 1.
INSERT INTO trade_lock_low_water (op_code, low_water)
VALUES (:op_code, CAST('1970-01-01' AS DATETIME(6)) + INTERVAL IF(:from_us = 1, :to_us,
    1) MICROSECOND)
ON DUPLICATE KEY UPDATE low_water = IF(
    low_water = CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :from_us MICROSECOND,
    CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND, low_water)

-- name: low_water_stretch
-- The next stretch of one operation to look through: whether a row stands in it, and where it ends,
-- in microseconds.  It ends at the given moment (then the answer is NULL), or a certain number of
-- rows behind the first one.
SELECT f.next_run_at IS NOT NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.next_run_at)
FROM tl_schema
LEFT JOIN (SELECT next_run_at
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
        + INTERVAL :from_us MICROSECOND
        AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
    ORDER BY op_code, next_run_at LIMIT 1) f ON TRUE
LEFT JOIN (SELECT next_run_at
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at > CAST('1970-01-01' AS DATETIME(6))
        + INTERVAL :from_us MICROSECOND
        AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
    ORDER BY op_code, next_run_at LIMIT 1 OFFSET 1000) l ON TRUE
WHERE one = 1

-- name: next_due
-- When the next row of a lane becomes due, in milliseconds from now: the first entry of the index.
SELECT GREATEST(0, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), next_run_at) DIV 1000)
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at > '1970-01-01'
ORDER BY op_code, next_run_at
LIMIT 1

-- name: operation_next
-- The operation after the given one, in the order of the names, with its low-water mark in
-- microseconds (1 if there is none, since next_run_at = 0 is never due), and the time.  Operations
-- are read one at a time, so the server reads one entry of the index for each.  A GROUP BY over all
-- of them is planned by what the server knew of the table when it opened its handle: with a handle
-- from the time when the table was small, it walks the whole index (MariaDB 10.11).
SELECT t.op_code, COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.low_water), 1),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
FROM trade_lock t FORCE INDEX (due)
LEFT JOIN trade_lock_low_water w ON w.op_code = t.op_code
WHERE t.op_code > :op_code
ORDER BY t.op_code LIMIT 1

-- name: overdue
-- How many rows of one lane have been due for longer than a time without being claimed, and how
-- long the oldest has waited, in microseconds.  It looks at those that are due longest, up to a
-- limit.  Trades of :unpaused_op, unless that is NULL, are left out while their channel is paused.
SELECT COUNT(*), COALESCE(MAX(late_us), 0)
FROM (SELECT cust_no, serial_no, status, updated_at,
        TIMESTAMPDIFF(MICROSECOND, next_run_at, UTC_TIMESTAMP(6)) AS late_us
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at > '1970-01-01'
        AND next_run_at <= UTC_TIMESTAMP(6) - INTERVAL :late_us MICROSECOND AND session_id IS NULL
    ORDER BY op_code, next_run_at
    LIMIT :most) AS oldest
LEFT JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = oldest.cust_no
    AND s.serial_no = oldest.serial_no AND s.op_code = :unpaused_op
LEFT JOIN trade_channel p FORCE INDEX (PRIMARY) ON p.channel = s.channel COLLATE ascii_nopad_bin
    AND p.op_code IN ('', s.op_code) AND p.paused = 1
WHERE oldest.status = 'F' AND p.channel IS NULL
    AND oldest.updated_at <= UTC_TIMESTAMP(6) - INTERVAL :late_us MICROSECOND

-- name: reap_dead
-- P rows of one operation under sessions that are ended, neither settled nor swept, within a
-- stretch of time.  The inner SELECT needs the index alone, so rows that the living hold or others
-- finished are not read.  The sessions are read by a consistent read: death is final, and the
-- opening proves it again.
SELECT t.cust_no, t.serial_no, t.fence, t.log_no, t.session_id, /*include said_columns*/
FROM (SELECT cust_no, serial_no, op_code
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
        + INTERVAL :from_us MICROSECOND
        AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
        AND session_id IN (SELECT x.session_id FROM tl_session x FORCE INDEX (to_sweep)
            WHERE x.swept_at IS NULL AND x.ended_at IS NOT NULL AND x.settled = 0)) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
WHERE t.status = 'P' AND t.lane = 'S'
LIMIT :most

-- name: reap_overdue
-- P rows of one operation whose max_hold ended within a stretch of time, in the order of the index.
SELECT cust_no, serial_no, fence, log_no,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at), /*include said_columns*/
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
    + INTERVAL :from_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
    AND status = 'P' AND lane = 'S'
ORDER BY op_code, next_run_at
LIMIT 256

-- name: row_held
-- Whether an open transaction holds the row; then error 1205 comes at once.  The lock that this
-- takes ends with the statement.
SELECT 1 FROM trade_lock FORCE INDEX (PRIMARY)
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code
LOCK IN SHARE MODE NOWAIT

-- name: timeline
-- Every committed step of both rows of a trade, oldest first.  If one transaction wrote both, the
-- sync row comes first.  And which program a step's holder was, while its session is kept.
SELECT op_code, step, status, rev, fence, epoch, attempts, claims, sends, conflict, proof,
    thread_no, log_no, l.session_id, parked, channel_key, channel_ref, remark, actor, account,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', logged_at) AS logged_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', send_until) AS send_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', max_hold_until) AS max_hold_until_us,
    IF(status = 'P' OR RIGHT(op_code, 6) = _ascii '_RETRY',
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at), NULL) AS next_run_us,
    CONCAT(x.program, ' ', x.pid, '@', x.host) AS holder
FROM trade_lock_log l
LEFT JOIN tl_session x ON x.session_id = l.session_id
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code IN (:op_code, :retry_op)
ORDER BY logged_at, op_code, rev

-- name: said_columns
-- What a request says of itself, which stands on its row.
amount_minor, currency, batch, traceparent, label

-- name: said_values
-- The same, as an INSERT writes it.
:amount_minor, :currency, :batch, :traceparent, :label

-- name: view_by_key
-- One row with what belongs to it: the other lane, and the holder's session.  It is a consistent
-- read, which waits for nobody and shows what is committed.
SELECT /*include view_columns*/
FROM trade_lock_state
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code

-- name: view_columns
-- The columns of trade_lock_state that view_read() reads, each named like the member of tl_view.  A
-- finished row still has its last holder and next moment; they mean nothing any more.
state, alive, lane, status, cust_no, serial_no, op_code, fence, rev, epoch, sends,
    IF(lane = 'S', COALESCE(retry_attempts, 0), attempts) AS attempts,
    IF(lane = 'S', COALESCE(retry_claims, 0), claims) AS claims,
    thread_no, log_no, IF(status = 'P', session_id, NULL) AS session_id,
    IF(status = 'P', CONCAT(program, ' ', pid, '@', host), NULL) AS holder,
    retryable, conflict, exclusive, repeatable, retry_status,
    retry_epoch, proof, COALESCE(retry_parked, parked) AS parked, channel, channel_key,
    channel_ref, remark, actor,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) AS created_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', updated_at) AS updated_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at) AS now_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', max_hold_until) AS max_hold_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', send_until) AS send_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', COALESCE(retry_next_run_at,
        IF(lane = 'S' AND status <> 'P', NULL, next_run_at))) AS next_run_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', deadline_at) AS deadline_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', not_found_since) AS not_found_since_us,
    seen_by_channel, cancel_tried, success_epoch, fingerprint, token, payload, result,
    /*include said_columns*/
