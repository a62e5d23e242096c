-- Suspects, during whose last hold the holder died, among the oldest due work of one operation.
-- The index does not tell them from other rows, so only the first due rows are read, without a
-- lock.  As work is done, later ones move to the front.
SELECT t.cust_no, t.serial_no
FROM (SELECT op_code, cust_no, serial_no
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :retry_op AND next_run_at <= UTC_TIMESTAMP(6)
    ORDER BY op_code, next_run_at
    LIMIT 256) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
WHERE t.claims > 0 AND t.next_run_at <= UTC_TIMESTAMP(6)
LIMIT :most
FOR UPDATE SKIP LOCKED
