-- finish_retry.sql for many trades, in the order of their keys, on a connection of ours; none of
-- them says that two operators decided.  The first SELECT gives the values their names and types;
-- it reads nothing.
UPDATE (SELECT cust_no, serial_no, op_code, op_code AS retry_op, status, thread_no, log_no,
        token, proof, retryable, channel_ref, result, remark, actor, fence AS held_fence,
        token AS held_token
    FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
STRAIGHT_JOIN trade_lock r FORCE INDEX (PRIMARY) ON r.cust_no = s.cust_no
    AND r.serial_no = s.serial_no AND r.op_code = j.retry_op
SET s.status = j.status, s.step = 'end', s.max_hold_until = NULL,
    s.thread_no = j.thread_no, s.log_no = j.log_no, s.token = j.token,
    s.fence = s.fence + 1, s.rev = s.rev + 1, s.proof = j.proof,
    s.retryable = j.retryable, s.channel_ref = COALESCE(j.channel_ref, s.channel_ref),
    s.result = j.result,
    s.remark = COALESCE(j.remark, IF(j.status = 'Y', NULL, s.remark)), s.actor = j.actor,
    s.updated_at = UTC_TIMESTAMP(6),
    r.status = j.status, r.step = 'end', r.thread_no = j.thread_no, r.log_no = j.log_no,
    r.token = j.token, r.session_id = NULL, r.next_run_at = NULL, r.parked = NULL,
    r.claims = 0, r.fence = r.fence + 1, r.rev = r.rev + 1, r.actor = NULL,
    r.remark = IF(j.status = 'Y', NULL, r.remark), r.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P' AND s.fence = j.held_fence AND s.token = j.held_token
    AND (j.status = 'Y' OR s.success_epoch IS NULL OR s.success_epoch <> s.epoch)
