-- open_held.sql for many trades, in the order of their keys; none of them is a mutex.  The first
-- SELECT gives the values their names and types; it reads nothing.
UPDATE (SELECT cust_no, serial_no, op_code, step, thread_no, log_no, token,
        sends AS known_sends, fence AS before_us, retryable AS unsend,
        seen_by_channel AS seen, cancel_tried AS cancels, retryable AS not_found,
        channel_ref, remark, actor, fence AS held_fence, token AS held_token
    FROM trade_lock WHERE FALSE
    UNION ALL
    VALUES /*rows(*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
SET s.step = j.step, s.session_id = NULL, s.max_hold_until = NULL, s.next_run_at = NULL,
    s.thread_no = j.thread_no, s.log_no = j.log_no, s.token = j.token,
    s.fence = s.fence + 1, s.rev = s.rev + 1,
    s.send_until = IF(s.sends = j.known_sends,
        TIMESTAMP'1970-01-01 00:00:00' + INTERVAL NULLIF(j.before_us, 0) MICROSECOND,
        s.send_until),
    s.sends = IF(j.unsend AND s.sends > 0, s.sends - 1, s.sends),
    s.seen_by_channel = s.seen_by_channel OR j.seen,
    s.cancel_tried = s.cancel_tried OR j.cancels,
    s.not_found_since = CASE j.not_found
        WHEN 1 THEN COALESCE(s.not_found_since, UTC_TIMESTAMP(6))
        WHEN 2 THEN NULL ELSE s.not_found_since END,
    s.channel_ref = COALESCE(j.channel_ref, s.channel_ref),
    s.remark = COALESCE(j.remark, s.remark), s.actor = j.actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P' AND s.fence = j.held_fence AND s.token = j.held_token
