-- As group.sql, and with one step more.  Both have the same parameters:
--   reask  a mutex: inserted, or taken over where finished or overdue, or refused; also
--          by a trade that happens once
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
    session_id, token, fence, rev, sends, repeatable, max_hold_until, send_until,
    next_run_at, fingerprint, payload, created_at, updated_at, deadline_at, channel,
    channel_key, channel_ref, result, proof, retryable, remark, actor)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    COALESCE(?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), fence, ?,
    IF(step = 'reask', 1, 0),
    UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND, IF(sends > 0, max_hold_until, NULL),
    IF(step = 'ask', GREATEST(max_hold_until, SYSDATE(6) + INTERVAL 5 SECOND), NULL),
    ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6),
    UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND, ?, ?, ?, ?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE
    token = CASE VALUES(step)
        WHEN 'end' THEN IF(status = 'P' AND fence = VALUES(fence)
            AND token = VALUES(payload) AND (VALUES(status) = 'Y'
                OR success_epoch IS NULL OR success_epoch <> epoch), VALUES(token), token)
        WHEN 'reask' THEN IF(repeatable = 1 AND (status = 'F'
            OR (status = 'Y' AND lane = 'S')
            OR (status = 'P' AND (max_hold_until <= UTC_TIMESTAMP(6)
                OR session_id IS NULL))),
            VALUES(token), token)
        ELSE token END,
    status = IF(token = VALUES(token), VALUES(status), status),
    step = IF(token = VALUES(token), VALUES(step), step),
    thread_no = IF(token = VALUES(token), VALUES(thread_no), thread_no),
    log_no = IF(token = VALUES(token), VALUES(log_no), log_no),
    session_id = IF(token = VALUES(token) AND (step = 'reask' OR repeatable = 1),
        VALUES(session_id), session_id),
    fence = IF(token = VALUES(token), fence + 1, fence),
    rev = IF(token = VALUES(token), rev + 1, rev),
    epoch = IF(token = VALUES(token) AND step = 'reask', epoch + 1, epoch),
    sends = IF(token = VALUES(token) AND step = 'reask', VALUES(sends), sends),
    max_hold_until = IF(token = VALUES(token), VALUES(max_hold_until), max_hold_until),
    send_until = IF(token = VALUES(token) AND step = 'reask', VALUES(send_until), send_until),
    next_run_at = IF(token = VALUES(token) AND step = 'reask', NULL, next_run_at),
    fingerprint = IF(token = VALUES(token) AND step = 'reask', VALUES(fingerprint), fingerprint),
    payload = IF(token = VALUES(token) AND step = 'reask', VALUES(payload), payload),
    channel_ref = IF(token = VALUES(token), COALESCE(VALUES(channel_ref), channel_ref), channel_ref),
    result = IF(token = VALUES(token), VALUES(result), result),
    proof = IF(token = VALUES(token), VALUES(proof), proof),
    retryable = IF(token = VALUES(token), VALUES(retryable), retryable),
    remark = IF(token = VALUES(token), COALESCE(VALUES(remark), remark), remark),
    actor = IF(token = VALUES(token), VALUES(actor), actor),
    updated_at = IF(token = VALUES(token), VALUES(updated_at), updated_at)
RETURNING token, fence, epoch
