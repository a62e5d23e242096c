-- An operator makes a waiting or parked lane due now.  Both rows in one statement, sync
-- row first; the sync row's fence is the one that the operator saw, and a step that came
-- in between makes this one change nothing.  A row that was parked as poison is run alone
-- once more: claims falls to 1, not to 0.
UPDATE trade_lock s
STRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
    AND r.op_code = ?
SET s.step = 'operator', s.thread_no = ?, s.log_no = ?, s.token = ?, s.fence = s.fence + 1,
    s.rev = s.rev + 1, s.actor = ?, s.remark = ?, s.updated_at = UTC_TIMESTAMP(6),
    r.step = 'operator', r.thread_no = ?, r.log_no = ?, r.token = ?, r.fence = r.fence + 1,
    r.rev = r.rev + 1, r.actor = ?, r.remark = ?, r.parked = NULL,
    r.claims = LEAST(r.claims, 1), r.next_run_at = UTC_TIMESTAMP(6),
    r.updated_at = UTC_TIMESTAMP(6)
WHERE s.cust_no = ? AND s.serial_no = ? AND s.op_code = ? AND s.status = 'P'
    AND s.fence = ? AND s.session_id IS NULL AND r.status = 'F' AND r.epoch = s.epoch
    AND (r.next_run_at IS NOT NULL OR r.parked IS NOT NULL)
