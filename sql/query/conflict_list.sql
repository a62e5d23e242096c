-- Trades in conflict among those that the newest pieces of evidence are about; a conflict is always
-- set together with the evidence that made it.
SELECT t.cust_no, t.serial_no, t.op_code
FROM (SELECT evidence_id, cust_no, serial_no, op_code FROM trade_evidence
    ORDER BY evidence_id DESC LIMIT 10000) e
STRAIGHT_JOIN trade_lock t ON t.cust_no = e.cust_no AND t.serial_no = e.serial_no
    AND t.op_code = e.op_code
WHERE t.conflict = 1
GROUP BY t.cust_no, t.serial_no, t.op_code
ORDER BY MAX(e.evidence_id) DESC
LIMIT :most
