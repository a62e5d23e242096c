-- As view_by_key.sql, for the rows of a page that are shown.  A row that is gone meanwhile is left
-- out.  A table that seems empty is read whole, without a lock.
SELECT /*include view_columns*/
FROM (SELECT cust_no, serial_no, op_code FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(:cust_no, :serial_no, :op_code)/*)rows*/) k
STRAIGHT_JOIN trade_lock_state USING (cust_no, serial_no, op_code)
