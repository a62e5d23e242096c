-- Appends evidence: what somebody knows of a payment.
INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, channel_key, outcome, final,
    channel_ref, source, remark, thread_no, account, filed_at)
VALUES (:cust_no, :serial_no, :op_code, :epoch, :channel_key, :outcome, :final, :channel_ref,
    :source, :remark, :thread_no, USER(), UTC_TIMESTAMP(6))
