-- Whether an open transaction holds the row: error 1205, at once, when one does.  The lock is given
-- back with the end of the statement.
SELECT 1 FROM trade_lock FORCE INDEX (PRIMARY)
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code
LOCK IN SHARE MODE NOWAIT
