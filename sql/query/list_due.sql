-- A page of one operation's rows that have a next moment: sync rows with a holder by the
-- end of its max_hold, retry rows by their next attempt.  It starts at a moment, in
-- microseconds, and steps over the rows of that moment that were seen already.
SELECT cust_no, serial_no, op_code, lane, status, conflict, parked IS NOT NULL AS is_parked,
    TIMESTAMPDIFF(MICROSECOND, updated_at, UTC_TIMESTAMP(6)) DIV 1000 AS age_ms,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at) AS next_run_us
FROM trade_lock FORCE INDEX (due)
WHERE op_code = ?
    AND next_run_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL ? MICROSECOND
ORDER BY op_code, next_run_at, session_id, cust_no, serial_no
LIMIT ? OFFSET ?
