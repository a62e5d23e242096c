-- As view_by_key.sql, for many keys.  The first SELECT gives the keys their names and types, so
-- that each row is found by its primary key.  A table that seems empty is read whole, without a
-- lock.
-- The last column says whether evidence or decisions are on file about the trade, so that a worker
-- need not ask for each.  Where there are several, each comes with the same row.
SELECT /*include view_columns*/,
    filed_id IS NOT NULL OR decided_rev IS NOT NULL
FROM (SELECT cust_no, serial_no, op_code FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(:cust_no, :serial_no, :op_code)/*)rows*/) k
STRAIGHT_JOIN trade_lock_state USING (cust_no, serial_no, op_code)
LEFT JOIN (SELECT cust_no AS filed_cust, serial_no AS filed_serial, op_code AS filed_op,
        evidence_id AS filed_id
    FROM trade_evidence) e
    ON filed_cust = cust_no AND filed_serial = serial_no AND filed_op = op_code
LEFT JOIN (SELECT cust_no AS decided_cust, serial_no AS decided_serial, op_code AS decided_op,
        rev AS decided_rev
    FROM trade_resolution) d
    ON decided_cust = cust_no AND decided_serial = serial_no AND decided_op = op_code
