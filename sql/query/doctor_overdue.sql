-- How long the oldest due row of one operation has been waiting, in milliseconds; no row
-- when nothing is due.  From the low-water mark on, among the first of the index: finished
-- sync rows are in it.
SELECT TIMESTAMPDIFF(MICROSECOND, t.next_run_at, UTC_TIMESTAMP(6)) DIV 1000
FROM (SELECT op_code, cust_no, serial_no
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = ? AND next_run_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL ? MICROSECOND
        AND next_run_at <= UTC_TIMESTAMP(6)
    ORDER BY op_code, next_run_at
    LIMIT 1000) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
WHERE (t.lane = 'R' OR t.status = 'P') AND t.next_run_at <= UTC_TIMESTAMP(6)
ORDER BY t.next_run_at
LIMIT 1
