-- When the next row of a lane becomes due, in milliseconds from now: the first entry of the index.
SELECT GREATEST(0, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), next_run_at) DIV 1000)
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at > '1970-01-01'
ORDER BY op_code, next_run_at
LIMIT 1
