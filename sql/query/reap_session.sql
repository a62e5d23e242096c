-- P rows of one operation under one ended session: an index-only walk over what is in
-- process, since finished rows have no next_run_at.
SELECT cust_no, serial_no, fence
FROM trade_lock FORCE INDEX (due)
WHERE op_code = ? AND next_run_at > '1970-01-01' AND session_id = ? AND status = 'P'
    AND lane = 'S'
LIMIT 256
