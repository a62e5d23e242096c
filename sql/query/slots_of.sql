-- To which slots customers belong, by this database's rule.
SELECT k.number, tl_customer_slot(k.cust_no)
FROM (SELECT evidence_id AS number, cust_no FROM trade_evidence WHERE FALSE
    UNION ALL VALUES /*rows(*/(:number, :cust_no)/*)rows*/) k
