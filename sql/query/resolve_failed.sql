-- Two operators say that a trade in doubt failed.  It stays P: its lane becomes due, and
-- the workflow's own program ends it as F together with its business rows.  From here on
-- nothing is sent for it (as after a cancel).  Never while somebody holds it or could
-- still send, and never against evidence of success.  Both rows are held since
-- resolve_lock, sync row first.
UPDATE trade_lock s
STRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
    AND r.op_code = ?
SET s.step = 'resolve failed', s.thread_no = ?, s.log_no = ?, s.token = ?,
    s.fence = s.fence + 1, s.rev = s.rev + 1, s.cancel_tried = 1, s.actor = ?,
    s.remark = ?, s.updated_at = UTC_TIMESTAMP(6),
    r.step = 'resolve failed', r.thread_no = ?, r.log_no = ?, r.token = ?,
    r.fence = r.fence + 1, r.rev = r.rev + 1, r.actor = ?, r.remark = ?, r.parked = NULL,
    r.claims = LEAST(r.claims, 1), r.next_run_at = UTC_TIMESTAMP(6),
    r.updated_at = UTC_TIMESTAMP(6)
WHERE s.cust_no = ? AND s.serial_no = ? AND s.op_code = ? AND s.rev = ? AND s.status = 'P'
    AND s.session_id IS NULL AND (s.success_epoch IS NULL OR s.success_epoch <> s.epoch)
    AND (s.send_until IS NULL OR s.send_until <= UTC_TIMESTAMP(6))
    AND r.status = 'F' AND r.epoch = s.epoch
    AND (r.next_run_at IS NOT NULL OR r.parked IS NOT NULL)
