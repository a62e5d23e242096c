-- How long the oldest due row of one operation within a stretch of time has waited, in
-- milliseconds; no row if nothing is due.
SELECT TIMESTAMPDIFF(MICROSECOND, next_run_at, UTC_TIMESTAMP(6)) DIV 1000
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
    + INTERVAL :from_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
    AND next_run_at <= UTC_TIMESTAMP(6) AND (lane = 'R' OR status = 'P')
ORDER BY op_code, next_run_at
LIMIT 1
