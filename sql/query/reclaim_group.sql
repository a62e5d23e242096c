-- ask_reclaim.sql for many trades, in the order of their keys; none of them is exclusive.  The
-- first SELECT gives the values their names and types; it reads nothing.
UPDATE (SELECT cust_no, serial_no, op_code, thread_no, log_no, session_id, token, sends,
        fence AS max_hold_ms, rev AS deadline_ms, channel_key, remark,
        actor, epoch AS seen_epoch, fence AS seen_fence, fingerprint
    FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
SET s.status = 'P', s.step = 'reclaim', s.thread_no = j.thread_no, s.log_no = j.log_no,
    s.session_id = j.session_id, s.token = j.token, s.fence = s.fence + 1,
    s.rev = s.rev + 1, s.epoch = s.epoch + 1, s.sends = j.sends,
    s.max_hold_until = UTC_TIMESTAMP(6) + INTERVAL j.max_hold_ms * 1000 MICROSECOND,
    s.send_until = IF(j.sends > 0,
        UTC_TIMESTAMP(6) + INTERVAL j.max_hold_ms * 1000 MICROSECOND, NULL),
    s.next_run_at = GREATEST(
        UTC_TIMESTAMP(6) + INTERVAL j.max_hold_ms * 1000 MICROSECOND,
        SYSDATE(6) + INTERVAL 5 SECOND),
    s.deadline_at = UTC_TIMESTAMP(6) + INTERVAL j.deadline_ms * 1000 MICROSECOND,
    s.exclusive = 0, s.channel_key = j.channel_key, s.channel_ref = NULL,
    s.not_found_since = NULL, s.seen_by_channel = 0, s.cancel_tried = 0, s.retryable = 0,
    s.proof = '-', s.result = NULL, s.remark = j.remark, s.actor = j.actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'F' AND s.epoch = j.seen_epoch
    AND (j.seen_fence = 0 OR s.fence = j.seen_fence) AND s.retryable = 1
    AND s.conflict = 0 AND s.repeatable = 0 AND s.fingerprint <=> j.fingerprint
