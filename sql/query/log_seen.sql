-- Which of these rows have a step that was written under a log UUID: their last, their first, or
-- one of those between.  Needs the right to read history.
SELECT t.cust_no, t.serial_no, t.op_code
FROM (SELECT cust_no, serial_no, op_code FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(:cust_no, :serial_no, :op_code)/*)rows*/) k
STRAIGHT_JOIN trade_lock t FORCE INDEX (PRIMARY) USING (cust_no, serial_no, op_code)
WHERE t.log_no = :log_no OR t.first_log_no = :log_no
    OR EXISTS (SELECT 1 FROM trade_lock_past p
        WHERE p.serial_no = t.serial_no AND p.cust_no = t.cust_no
            AND p.op_code = t.op_code AND p.log_no = :log_no)
