-- A page of the rows in the order of their key, and whether the step that made each what
-- it is stands in its history; and whether it is in process where no janitor looks, before the
-- low-water mark (a clock that was set back is behind the mark for a moment).
SELECT t.cust_no, t.serial_no, t.op_code, t.status, t.epoch, COALESCE(t.channel_key, ''),
    t.conflict, t.proof, t.success_epoch <=> t.epoch, t.rev, t.lane,
    t.channel IS NOT NULL,
    EXISTS (SELECT 1 FROM trade_lock_log l WHERE l.cust_no = t.cust_no
        AND l.serial_no = t.serial_no AND l.op_code = t.op_code AND l.rev = t.rev),
    t.status = 'P' AND t.lane = 'S' AND t.session_id IS NOT NULL
        AND EXISTS (SELECT 1 FROM trade_lock_low_water w WHERE w.op_code = t.op_code
            AND w.low_water > t.next_run_at AND w.low_water <= UTC_TIMESTAMP(6))
FROM trade_lock t
WHERE t.cust_no >= ? AND (t.cust_no > ? OR (t.cust_no = ? AND (t.serial_no > ?
    OR (t.serial_no = ? AND t.op_code > ?))))
ORDER BY t.cust_no, t.serial_no, t.op_code
LIMIT ?
