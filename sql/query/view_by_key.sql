-- One row with what belongs to it: the other lane, and the holder's session.  It is a consistent
-- read, which waits for nobody and shows what is committed.
SELECT /*include view_columns*/
FROM trade_lock_state
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code
