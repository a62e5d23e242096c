-- What an end whose claim of a slot is stale knows of money, of these customers: each trade that is
-- paid there, or that was sent and may be, with the token of the step that its last send began
-- with.  Queries, claims and clock jumps change neither.
SELECT JSON_OBJECT('cust_no', t.cust_no, 'serial_no', t.serial_no, 'op_code', t.op_code,
    'paid', t.status = 'Y', 'token', CASE WHEN t.sends = 0 THEN NULL
        WHEN t.first_rev IS NOT NULL AND t.first_sends = t.sends THEN HEX(t.first_token)
        ELSE COALESCE(SUBSTRING(MIN(CONCAT(LPAD(p.rev, 20, '0'), HEX(p.token))), 21),
            HEX(t.token)) END)
FROM JSON_TABLE(:customers, '$[*]' COLUMNS (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$')) m
STRAIGHT_JOIN trade_lock t FORCE INDEX (PRIMARY) ON t.cust_no = m.cust_no
LEFT JOIN trade_lock_past p FORCE INDEX (PRIMARY) ON p.serial_no = t.serial_no
    AND p.cust_no = t.cust_no AND p.op_code = t.op_code AND p.sends = t.sends
WHERE t.lane = 'S' AND t.repeatable = 0
    AND (t.status = 'Y' OR (t.status = 'P' AND t.sends > 0))
GROUP BY t.cust_no, t.serial_no, t.op_code
