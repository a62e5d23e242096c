-- P rows of one operation whose max_hold is over, in the order of the index; but for what
-- stands at a moment that is never due (open_held.sql).
SELECT cust_no, serial_no, fence
FROM trade_lock FORCE INDEX (due)
WHERE op_code = ? AND next_run_at > '1970-01-01' AND next_run_at <= UTC_TIMESTAMP(6)
    AND status = 'P' AND lane = 'S'
ORDER BY op_code, next_run_at
LIMIT 256
