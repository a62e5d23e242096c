-- The evidence about the trades that a page of a purge named, for an archive.
SELECT t.evidence_id, t.cust_no, t.serial_no, t.op_code, t.epoch, t.channel_key, t.outcome,
    t.final, t.channel_ref, t.source, t.remark, t.thread_no, t.account, t.filed_at,
    t.amount_minor, t.currency, t.contradicts
FROM JSON_TABLE(:named, '$[*]' COLUMNS (
    /*include named_columns*/)) n
STRAIGHT_JOIN trade_evidence t ON t.cust_no = n.cust_no AND t.serial_no = n.serial_no
    AND t.op_code = n.op_code
ORDER BY t.cust_no, t.serial_no, t.op_code, t.evidence_id
