-- The retry-compensation lock: one compensating attempt gets in.  Both rows in one statement, sync
-- row first.  A waiting row of the same epoch means that the sync row has no holder.  The last
-- parameters: 0 a claim by key, of a row that is due and not parked; 2 the same of a worker, which
-- may look at parked rows that became due; 1 an operator's override, bound to the fence that was
-- seen. The claim goes on with the work of the thread, else with the trade's: that of its first
-- ask, else of its last step, else a new one.
UPDATE trade_lock s
STRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
    AND r.op_code = ?
SET s.step = 'claim', s.thread_no = ?,
    s.log_no = COALESCE(?, s.first_log_no, s.log_no, ?), s.session_id = ?, s.token = ?,
    s.fence = s.fence + 1, s.rev = s.rev + 1,
    s.max_hold_until = UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND,
    s.next_run_at = GREATEST(UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND,
        SYSDATE(6) + INTERVAL 5 SECOND),
    s.actor = NULL, s.updated_at = UTC_TIMESTAMP(6),
    r.status = 'P', r.step = 'claim', r.thread_no = ?,
    r.log_no = COALESCE(?, s.first_log_no, s.log_no, ?), r.session_id = ?, r.token = ?,
    r.fence = r.fence + 1, r.rev = r.rev + 1, r.attempts = r.attempts + 1,
    r.claims = r.claims + 1, r.next_run_at = NULL, r.actor = NULL,
    r.updated_at = UTC_TIMESTAMP(6)
WHERE s.cust_no = ? AND s.serial_no = ? AND s.op_code = ? AND s.status = 'P'
    AND s.session_id IS NULL AND r.status = 'F' AND r.epoch = s.epoch
    AND ((? <> 1 AND r.next_run_at <= UTC_TIMESTAMP(6) AND (r.parked IS NULL OR ? = 2))
        OR s.fence = ?)
