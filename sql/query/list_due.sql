-- A page of one operation's rows that have a next moment: sync rows by the end of their max_hold,
-- which a finished one keeps, retry rows by their next attempt.  It starts at a moment, in
-- microseconds, ends before another, and steps over the rows of the first moment that were seen
-- already.  The two parameters in between: 1 to show finished sync rows, and 1 to show what is in
-- process.
SELECT /*include list_columns*/,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at) AS next_run_us
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code
    AND next_run_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :from_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
    AND IF(lane = 'S' AND status <> 'P', :finished, :open)
ORDER BY op_code, next_run_at, session_id, cust_no, serial_no
LIMIT :most OFFSET :skip
