-- Which of these trades of a stale end (slot_sends.sql) this shard does not know as far.  Of one that
-- is paid there: it has no such trade, or does not say that it is paid, or paid it by a send of its
-- own.  Of another one: it never had the step that it was sent by.
SELECT m.cust_no, m.serial_no, m.op_code, m.paid
FROM JSON_TABLE(:trades, '$[*]' COLUMNS (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$.cust_no',
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$.serial_no',
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$.op_code',
    paid TINYINT PATH '$.paid',
    token VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin PATH '$.token')) m
LEFT JOIN trade_lock t FORCE INDEX (PRIMARY) ON t.cust_no = m.cust_no
    AND t.serial_no = m.serial_no AND t.op_code = m.op_code AND t.lane = 'S'
LEFT JOIN trade_lock_past p FORCE INDEX (PRIMARY) ON p.serial_no = m.serial_no
    AND p.cust_no = m.cust_no AND p.op_code = m.op_code AND p.token = UNHEX(m.token)
WHERE t.cust_no IS NULL OR (m.paid = 1 AND t.status <> 'Y')
    OR (m.token IS NOT NULL AND (m.paid = 0 OR t.sends > 0)
        AND t.token <> UNHEX(m.token) AND t.first_token <> UNHEX(m.token) AND p.rev IS NULL)
GROUP BY m.cust_no, m.serial_no, m.op_code, m.paid
