-- The trades in conflict, by operation, channel and currency, among those that the newest pieces of
-- evidence are about; a conflict is always set together with the evidence that made it.
SELECT t.op_code, COALESCE(t.channel, 'unknown'), COALESCE(t.currency, 'unknown'), COUNT(*),
    CAST(COALESCE(SUM(t.amount_minor), 0) AS SIGNED)
FROM (SELECT DISTINCT cust_no, serial_no, op_code
    FROM (SELECT cust_no, serial_no, op_code FROM trade_evidence
        ORDER BY evidence_id DESC LIMIT 10000) e) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
WHERE t.conflict = 1
GROUP BY 1, 2, 3
