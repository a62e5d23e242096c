-- A trade of this channel that waits, and that nobody holds.
SELECT serial_no, cust_no
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at IS NULL AND session_id IS NULL
    AND lane = 'S' AND status = 'P' AND channel = :channel
ORDER BY op_code, next_run_at, session_id
LIMIT 1
