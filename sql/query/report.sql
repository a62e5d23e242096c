-- Reports of trades: counts and sums, and the trades themselves.  Both walk through the rows, page by
-- page: by their key, or for sums by the moment at which they were asked for.

-- name: report_end
-- The last key of a page behind a key; no row: what is left is less than a page.
SELECT cust_no, serial_no, op_code
FROM trade_lock FORCE INDEX (PRIMARY)
WHERE cust_no >= :cust_no AND (cust_no > :cust_no OR (cust_no = :cust_no
    AND (serial_no > :serial_no OR (serial_no = :serial_no AND op_code > :op_code))))
ORDER BY cust_no, serial_no, op_code
LIMIT 1 OFFSET :most

-- name: report_lines
-- The trades of a page, with the moments at which each was asked for, known to be paid (0: it is not)
-- and booked (0: it has not ended).  What followed the end, as evidence, a decision or a move to
-- another shard, changes neither: so the end is looked for in the history.  A trade is told once for
-- each piece of evidence that it was paid; the earliest counts.  `rest`: only those whose moments
-- report_sums cannot tell.  No moment is later than logged_at, nor earlier than created_at.
SELECT t.serial_no, t.cust_no, t.op_code, t.channel, t.channel_key, t.channel_ref, t.amount_minor,
    t.currency, /*include report_state_columns*/, t.batch, t.label,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.created_at) AS asked_us,
    COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', COALESCE(e.filed_at,
        IF(t.status = 'Y', COALESCE(b.logged_at, t.logged_at), NULL))), 0) AS paid_us,
    IF(t.status = 'P', 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01',
        COALESCE(b.logged_at, t.logged_at))) AS booked_us
FROM trade_lock t FORCE INDEX (PRIMARY)
LEFT JOIN trade_lock_past b FORCE INDEX (PRIMARY)
    ON b.serial_no = IF(t.status = 'P' OR t.step = 'end', NULL, t.serial_no)
    AND b.cust_no = t.cust_no AND b.op_code = t.op_code AND b.step = 'end'
    AND b.status = t.status AND b.epoch = t.epoch
LEFT JOIN trade_evidence e FORCE INDEX (trade)
    ON e.cust_no = IF(t.success_epoch IS NULL, NULL, t.cust_no)
    AND e.serial_no = t.serial_no AND e.op_code = t.op_code AND e.epoch = t.success_epoch
    AND e.outcome = 'SUCCEEDED' AND e.contradicts < 2
    AND (e.channel_key IS NULL OR t.channel_key IS NULL OR e.channel_key = t.channel_key)
WHERE /*include report_page_condition*/
    AND t.created_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :until_us MICROSECOND
    AND t.logged_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :since_us MICROSECOND
    AND (:rest = 0 OR t.step <> 'end' OR t.success_epoch IS NOT NULL)
ORDER BY t.cust_no, t.serial_no, t.op_code

-- name: report_made_condition
-- The trades that were asked for behind a moment and key up to others.
t.created_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
    AND t.created_at <= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :end_us MICROSECOND
    AND (t.created_at > CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
        OR t.cust_no > :cust_no OR (t.cust_no = :cust_no AND (t.serial_no > :serial_no
            OR (t.serial_no = :serial_no AND t.op_code > :op_code))))
    AND (t.created_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :end_us MICROSECOND
        OR t.cust_no < :end_cust OR (t.cust_no = :end_cust AND (t.serial_no < :end_serial
            OR (t.serial_no = :end_serial AND t.op_code <= :end_op))))

-- name: report_made_end
-- As report_end, in the order in which trades were asked for.
SELECT t.cust_no, t.serial_no, t.op_code, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.created_at)
FROM trade_lock t FORCE INDEX (made)
WHERE /*include report_made_condition*/
ORDER BY t.created_at, t.cust_no, t.serial_no, t.op_code
LIMIT 1 OFFSET :most

-- name: report_made_sums
-- The trades of a page by the moment at which they were asked for, counted and summed.
SELECT /*include report_sums_columns*/
FROM (SELECT t.created_at AS at, t.channel, t.op_code, t.currency,
        /*include report_state_columns*/, t.amount_minor
    FROM trade_lock t FORCE INDEX (made)
    WHERE /*include report_made_condition*/ AND t.lane = 'S' AND t.repeatable = 0) AS m
GROUP BY 1, 2, 3, 4, 5

-- name: report_page_condition
-- The trades behind one key up to another.
t.cust_no >= :cust_no AND t.cust_no <= :end_cust
    AND (t.cust_no > :cust_no OR t.serial_no > :serial_no
        OR (t.serial_no = :serial_no AND t.op_code > :op_code))
    AND (t.cust_no < :end_cust OR t.serial_no < :end_serial
        OR (t.serial_no = :end_serial AND t.op_code <= :end_op))
    AND t.lane = 'S' AND t.repeatable = 0

-- name: report_purged
-- Before which moment trades ended that purges have removed since, without an archive and into one;
-- 0: none of them reaches behind `since`.  What a purge that was cut off removed ended before now.
SELECT COALESCE(MAX(IF(said LIKE '%--archive%', 0, cut_us)), 0),
    COALESCE(MAX(IF(said LIKE '%--archive%', cut_us, 0)), 0)
FROM (SELECT said, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', COALESCE(ended_at, UTC_TIMESTAMP(6)))
        - CAST(REGEXP_SUBSTR(said, '[0-9]+') AS UNSIGNED)
            * IF(said REGEXP '[0-9]ms', 1000, 86400000000) AS cut_us
    FROM tl_act FORCE INDEX (what)
    WHERE begun_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :since_us MICROSECOND
        AND what = 'purge' AND done > 0
        AND NOT (ended_at IS NOT NULL AND COALESCE(counts, '') LIKE 'trades=0 %')) AS purges
WHERE cut_us > :since_us

-- name: report_state_columns
CASE t.status WHEN 'Y' THEN 'succeeded' WHEN 'F' THEN 'failed' ELSE 'in process' END AS state

-- name: report_sums
-- The trades of a page that were paid or booked between two moments, counted and summed: only those of
-- which the row itself tells it.  Their end is the last step, and no evidence came before it.
SELECT /*include report_sums_columns*/
FROM (SELECT t.logged_at AS at, t.channel, t.op_code, t.currency,
        /*include report_state_columns*/, t.amount_minor
    FROM trade_lock t FORCE INDEX (PRIMARY)
    WHERE /*include report_page_condition*/
        AND t.step = 'end' AND t.success_epoch IS NULL AND t.status <> 'P'
        AND (:paid = 0 OR t.status = 'Y')) AS m
WHERE m.at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :since_us MICROSECOND
    AND m.at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :until_us MICROSECOND
GROUP BY 1, 2, 3, 4, 5

-- name: report_sums_columns
IF(:by_day = 1, CAST(DATE(m.at) AS CHAR), '') AS day,
    IF(:by_channel = 1, COALESCE(m.channel, ''), '') AS channel,
    IF(:by_operation = 1, m.op_code, '') AS op_code, COALESCE(m.currency, '') AS currency,
    IF(:by_state = 1, m.state, '') AS state, COUNT(*) AS trades,
    CAST(SUM(IF(m.amount_minor > 0, m.amount_minor, 0)) AS CHAR) AS sum_minor
