-- What the database has of payments that a statement tells: the trade, whether to file it would set
-- the conflict, and whether the very same success was filed before.  What the statement does not
-- tell matches any.  number is the payment's; one whose trade is not there has no fence.
SELECT k.number, t.fence, t.status, t.epoch, t.amount_minor, t.currency,
    COALESCE(tl_contradicts(t.status, t.channel_key IS NULL OR k.paid_key IS NULL
            OR t.channel_key = k.paid_key,
        tl_paid_ref(t.cust_no, t.serial_no, t.op_code, t.status, t.epoch, t.channel_ref),
        t.amount_minor, t.currency, 'SUCCEEDED', 0, k.paid_ref, k.paid_minor, k.paid_currency), 0)
        AS contradicts,
    MAX(e.evidence_id IS NOT NULL) AS filed
FROM (SELECT evidence_id AS number, cust_no, serial_no, op_code, channel_key AS paid_key,
        channel_ref AS paid_ref, amount_minor AS paid_minor, currency AS paid_currency
        FROM trade_evidence WHERE FALSE
    UNION ALL VALUES /*rows(*/(:number, :cust_no, :serial_no, :op_code, :channel_key,
        :channel_ref, :amount_minor, :currency)/*)rows*/) k
LEFT JOIN trade_lock t ON t.cust_no = k.cust_no AND t.serial_no = k.serial_no
    AND t.op_code = k.op_code
LEFT JOIN trade_evidence e FORCE INDEX (trade) ON e.cust_no = k.cust_no
    AND e.serial_no = k.serial_no AND e.op_code = k.op_code AND e.outcome = 'SUCCEEDED'
    AND (k.paid_key IS NULL OR e.channel_key = k.paid_key)
    AND (k.paid_ref IS NULL OR e.channel_ref = k.paid_ref)
    AND (k.paid_minor IS NULL OR e.amount_minor = k.paid_minor)
    AND (k.paid_currency IS NULL OR e.currency = k.paid_currency)
GROUP BY k.number
