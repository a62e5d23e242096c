-- A page of one operation's rows that have a next moment: the end of max_hold for sync rows, also
-- finished ones; the next attempt for retry rows.  It starts at one moment and ends before another,
-- in microseconds.  Rows of the first moment that were seen already are skipped.  The two
-- parameters in between: 1 to show finished sync rows, and 1 to show rows in process.
SELECT /*include list_columns*/,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at) AS next_run_us
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code
    AND next_run_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :from_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
    AND IF(lane = 'S' AND status <> 'P', :finished, :open)
ORDER BY op_code, next_run_at, session_id, cust_no, serial_no
LIMIT :most OFFSET :skip
