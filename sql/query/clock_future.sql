-- How far the last step of what is in process lies in the future, which a clock explains that was
-- set forward and back while nobody looked.  What is due last is looked at: what is hidden behind
-- so much does not wait for longer than that.
SELECT COALESCE(MAX(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), t.updated_at)), 0)
FROM (SELECT cust_no, serial_no, op_code
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at > UTC_TIMESTAMP(6)
    ORDER BY op_code DESC, next_run_at DESC
    LIMIT 1000) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
WHERE IF(t.lane = 'S', t.status = 'P' AND t.repeatable = 0, t.status = 'F')
