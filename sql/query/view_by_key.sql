-- One row with what belongs to it: the other lane, and the holder's session.  A plain
-- read: it waits for nobody and shows what is committed.  What a finished row still says of
-- its last holder and its next moment is nothing any more.
SELECT state, alive, lane, status, cust_no, serial_no, op_code, fence, rev, epoch, sends,
    IF(lane = 'S', COALESCE(retry_attempts, 0), attempts) AS attempts,
    IF(lane = 'S', COALESCE(retry_claims, 0), claims) AS claims,
    thread_no, log_no, IF(status = 'P', session_id, NULL) AS session_id,
    IF(status = 'P', CONCAT(program, ' ', pid, '@', host), NULL) AS holder,
    retryable, conflict, exclusive, repeatable, retry_status,
    retry_epoch, proof, COALESCE(retry_parked, parked) AS parked, channel, channel_key,
    channel_ref, remark, actor,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) AS created_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', updated_at) AS updated_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at) AS now_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', max_hold_until) AS max_hold_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', send_until) AS send_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', COALESCE(retry_next_run_at,
        IF(lane = 'S' AND status <> 'P', NULL, next_run_at))) AS next_run_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', deadline_at) AS deadline_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', not_found_since) AS not_found_since_us,
    seen_by_channel, cancel_tried, success_epoch, fingerprint, token, payload, result
FROM trade_lock_state
WHERE cust_no = ? AND serial_no = ? AND op_code = ?
