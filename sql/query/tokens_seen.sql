-- Which of these steps were committed, whatever has become of their rows since: for a statement
-- that carried out many and changed fewer rows than all of them have.
SELECT j.token
FROM (SELECT cust_no, serial_no, op_code, token FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(?, ?, ?, ?)/*)rows*/) j
STRAIGHT_JOIN trade_lock t FORCE INDEX (PRIMARY) USING (cust_no, serial_no, op_code)
WHERE t.token = j.token
    OR tl_token_seen(j.cust_no, j.serial_no, j.op_code, j.token)
