-- P rows of one operation under one ended session, within a stretch of time: what others hold is
-- stepped over in the index.
SELECT cust_no, serial_no, fence, log_no
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
    + INTERVAL :from_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
    AND session_id = :session_id AND status = 'P' AND lane = 'S'
LIMIT 256
