-- A page of the rows in the order of their key: each as a step, in the columns of
-- audit_log.sql; what a channel's statement is compared with; whether it was ever changed
-- (if not, this is all of its history, and a decision of operators it is not); and whether
-- it is in process where no janitor looks, before the low-water mark (a clock that was set
-- back is behind the mark for a moment).
SELECT t.cust_no, t.serial_no, t.op_code, t.rev, t.step, t.status, t.token, t.fence, t.epoch,
    t.proof, COALESCE(t.session_id, ''),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.logged_at),
    COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.max_hold_until), 0),
    0, 0,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.created_at),
    COALESCE(t.channel_key, ''), t.conflict, t.success_epoch <=> t.epoch, t.lane,
    t.channel IS NOT NULL,
    EXISTS (SELECT 1 FROM trade_lock_past l WHERE l.cust_no = t.cust_no
        AND l.serial_no = t.serial_no AND l.op_code = t.op_code),
    t.status = 'P' AND t.lane = 'S' AND t.session_id IS NOT NULL
        AND EXISTS (SELECT 1 FROM trade_lock_low_water w WHERE w.op_code = t.op_code
            AND w.low_water > t.next_run_at AND w.low_water <= UTC_TIMESTAMP(6))
FROM trade_lock t
WHERE t.cust_no >= ? AND (t.cust_no > ? OR (t.cust_no = ? AND (t.serial_no > ?
    OR (t.serial_no = ? AND t.op_code > ?))))
ORDER BY t.cust_no, t.serial_no, t.op_code
LIMIT ?
