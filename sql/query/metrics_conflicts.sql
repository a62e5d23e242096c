-- The trades in conflict, by operation, channel and currency: how many, and how much money.  It
-- looks at a certain number at most.
SELECT t.op_code, COALESCE(t.channel, 'unknown'), COALESCE(t.currency, 'unknown'), COUNT(*),
    CAST(COALESCE(SUM(t.amount_minor), 0) AS CHAR)
FROM (SELECT cust_no, serial_no, op_code
    FROM trade_lock FORCE INDEX (serial)
    WHERE conflict = 1
    ORDER BY conflict, parked, serial_no
    LIMIT :most) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
GROUP BY 1, 2, 3
