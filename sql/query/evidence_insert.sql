-- Appends evidence: what somebody knows of a payment.  The answer says whether it contradicts the
-- row (sql/object/evidence.sql).
INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, channel_key, outcome, final,
    channel_ref, source, remark, thread_no, account, filed_at, amount_minor, currency)
VALUES (:cust_no, :serial_no, :op_code, :epoch, :channel_key, :outcome, :final, :channel_ref,
    :source, :remark, :thread_no, USER(), UTC_TIMESTAMP(6), :amount_minor, :currency)
RETURNING evidence_id, contradicts
