-- How far in the future the last step of rows in process lies.  Such a step was written while the
-- clock was set forward, and the clock was set back before anybody looked.  Only the rows that are
-- due last are read: a row that is hidden behind them waits no longer than they do.  A waiting
-- lane's sync row may have been written anew since, and still have moments of such a clock; if that
-- is possible, its history is read.
SELECT COALESCE(MAX(GREATEST(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), t.updated_at),
    IF(s.step <> 'clock' AND (s.created_at > UTC_TIMESTAMP(6) OR s.send_until > UTC_TIMESTAMP(6)
            OR s.epoch > 1),
        tl_carried_us(s.cust_no, s.serial_no, s.op_code), 0))), 0)
FROM (SELECT cust_no, serial_no, op_code
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at > UTC_TIMESTAMP(6)
    ORDER BY op_code DESC, next_run_at DESC
    LIMIT 1000) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
LEFT JOIN trade_lock s ON t.lane = 'R' AND s.cust_no = t.cust_no AND s.serial_no = t.serial_no
    AND s.op_code = LEFT(t.op_code, CHAR_LENGTH(t.op_code) - CHAR_LENGTH('_RETRY'))
    AND s.status = 'P' AND s.repeatable = 0
WHERE IF(t.lane = 'S', t.status = 'P' AND t.repeatable = 0, t.status = 'F')
