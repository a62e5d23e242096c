-- How long the oldest due row of one operation has been waiting, in milliseconds; no row
-- when nothing is due.
SELECT TIMESTAMPDIFF(MICROSECOND, next_run_at, UTC_TIMESTAMP(6)) DIV 1000
FROM trade_lock FORCE INDEX (due)
WHERE op_code = ? AND next_run_at > '1970-01-01' AND next_run_at <= UTC_TIMESTAMP(6)
ORDER BY op_code, next_run_at
LIMIT 1
