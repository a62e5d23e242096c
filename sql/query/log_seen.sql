-- Whether a step of this row was written under a log UUID: its last, its first, or one of
-- those between.  Needs the right to read history.
SELECT 1
FROM trade_lock_log
WHERE cust_no = ? AND serial_no = ? AND op_code = ? AND log_no = ?
LIMIT 1
