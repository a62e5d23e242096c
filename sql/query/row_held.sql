-- Whether an open transaction holds the row; then error 1205 comes at once.  The lock that this
-- takes ends with the statement.
SELECT 1 FROM trade_lock FORCE INDEX (PRIMARY)
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code
LOCK IN SHARE MODE NOWAIT
