-- What was filed about a trade, oldest first.
SELECT evidence_id, epoch, channel_key, outcome, final, channel_ref, source, remark,
    account, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', filed_at) AS filed_us, amount_minor,
    currency, contradicts
FROM trade_evidence
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code
ORDER BY evidence_id
