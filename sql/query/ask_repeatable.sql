-- The article's use as a mutex, one statement for the first time and every later one: a row that is
-- finished, or whose holder is not alive, is taken over; a live P row is left exactly as it is, and
-- so is a trade that happens once, whatever its status; a refusal writes nothing.  The token is
-- assigned first and tells the later assignments, and the caller, whether the row was taken.
-- Sessions are not looked at here: a subquery of an INSERT would lock the holder's session row, and
-- its heartbeat with it.  A caller that was refused reads the row; where the session is dead, which
-- is final, it asks again with the fence it saw (the last parameter, else 0). Such rows are not on
-- the due index: there is no retry lane and no janitor for them.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
    session_id, token, fence, rev, sends, repeatable, max_hold_until, send_until,
    fingerprint, payload, remark, actor, created_at, updated_at)
VALUES (?, ?, ?, ?, 'P', 'ask', ?, ?, ?, ?,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), fence, 1, 1,
    UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND, max_hold_until, ?, ?, ?, ?,
    UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE
    token = IF(repeatable = 1 AND (status = 'F' OR (status = 'Y' AND lane = 'S')
            OR (status = 'P' AND (max_hold_until <= UTC_TIMESTAMP(6)
                OR session_id IS NULL OR fence = ?))),
        VALUES(token), token),
    status = IF(token = VALUES(token), 'P', status),
    step = IF(token = VALUES(token), 'reask', step),
    thread_no = IF(token = VALUES(token), VALUES(thread_no), thread_no),
    log_no = IF(token = VALUES(token), VALUES(log_no), log_no),
    session_id = IF(token = VALUES(token), VALUES(session_id), session_id),
    fence = IF(token = VALUES(token), fence + 1, fence),
    rev = IF(token = VALUES(token), rev + 1, rev),
    epoch = IF(token = VALUES(token), epoch + 1, epoch),
    sends = IF(token = VALUES(token), 1, sends),
    proof = IF(token = VALUES(token), '-', proof),
    result = IF(token = VALUES(token), NULL, result),
    next_run_at = IF(token = VALUES(token), NULL, next_run_at),
    max_hold_until = IF(token = VALUES(token), VALUES(max_hold_until), max_hold_until),
    send_until = IF(token = VALUES(token), VALUES(send_until), send_until),
    fingerprint = IF(token = VALUES(token), VALUES(fingerprint), fingerprint),
    payload = IF(token = VALUES(token), VALUES(payload), payload),
    remark = IF(token = VALUES(token), VALUES(remark), remark),
    actor = IF(token = VALUES(token), VALUES(actor), actor),
    updated_at = IF(token = VALUES(token), VALUES(updated_at), updated_at)
RETURNING token, fence, epoch
