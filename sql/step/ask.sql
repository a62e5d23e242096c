-- name: ask_insert
-- The first ask of a trade makes its row, or answers a duplicate key (1062). No SELECT comes before
-- it: two first asks race on the primary key. If an open transaction holds the key it answers 1205
-- at once, since it never waits for a row lock.
--
-- next_run_at is later than the moment at which the row is written, however long the statement was
-- held up before (trade_lock_low_water). The fence starts from the server's microseconds, so it is
-- above every fence that the key had before a purge.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
    log_no, session_id, token, fence, rev, sends, max_hold_until, send_until,
    next_run_at, fingerprint, payload, created_at, updated_at, deadline_at, exclusive, channel,
    channel_key, /*include said_columns*/, remark, actor)
VALUES (:cust_no, :serial_no, :op_code, :lane, 'P', 'ask', :thread_no,
    :log_no, :session_id, :token,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), fence, :sends,
    UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    IF(sends > 0, max_hold_until, NULL),
    GREATEST(max_hold_until, SYSDATE(6) + INTERVAL 5 SECOND), :fingerprint, :payload,
        UTC_TIMESTAMP(6), UTC_TIMESTAMP(6),
    UTC_TIMESTAMP(6) + INTERVAL :deadline_ms * 1000 MICROSECOND, :exclusive, :channel,
    :channel_key, /*include said_values*/, :remark, :actor)
RETURNING fence

-- name: ask_repeatable
-- An ask for a repeatable row: one statement for the first time and every later one. It takes the
-- row over if the row is finished or without a holder. It leaves a holder's row exactly as it is,
-- and also a trade that happens once, whatever its status: a refusal writes nothing. The token is
-- assigned first, since it tells the later assignments, and the caller, whether the row was taken.
--
-- Neither sessions nor the clock are looked at here: a subquery of an INSERT would lock the
-- holder's session row, and delay its heartbeat, and the clock may have been set. A caller that was
-- refused reads the row. If the holder is dead or overdue, the caller asks again, alone, with the
-- fence that it saw. Such rows are not on the due index: they have no retry lane, and no janitor
-- opens them.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
    log_no, session_id, token, fence, rev, sends, repeatable, max_hold_until,
    send_until, fingerprint, payload, created_at, updated_at, remark, actor)
VALUES (:cust_no, :serial_no, :op_code, :lane, 'P', 'ask', :thread_no,
    :log_no, :session_id, :token,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), fence, :sends, 1,
    UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    IF(sends > 0, max_hold_until, NULL), :fingerprint, :payload, UTC_TIMESTAMP(6),
        UTC_TIMESTAMP(6), :remark, :actor)
ON DUPLICATE KEY UPDATE
    token = IF(repeatable = 1
        AND (status = 'F' OR (status = 'Y' AND lane = 'S')
            OR (status = 'P' AND (session_id IS NULL
                OR fence = :held_fence
            ))),
        VALUES(token), token),
    status = IF(token = VALUES(token), 'P', status),
    step = IF(token = VALUES(token), 'reask', step),
    thread_no = IF(token = VALUES(token), VALUES(thread_no), thread_no),
    log_no = IF(token = VALUES(token), VALUES(log_no), log_no),
    session_id = IF(token = VALUES(token), VALUES(session_id), session_id),
    fence = IF(token = VALUES(token), fence + 1, fence),
    rev = IF(token = VALUES(token), rev + 1, rev),
    epoch = IF(token = VALUES(token), epoch + 1, epoch),
    sends = IF(token = VALUES(token), VALUES(sends), sends),
    proof = IF(token = VALUES(token), '-', proof),
    result = IF(token = VALUES(token), NULL, result),
    next_run_at = IF(token = VALUES(token), NULL, next_run_at),
    max_hold_until = IF(token = VALUES(token), VALUES(max_hold_until), max_hold_until),
    send_until = IF(token = VALUES(token), IF(VALUES(sends) > 0, VALUES(max_hold_until), NULL),
        send_until),
    fingerprint = IF(token = VALUES(token), VALUES(fingerprint), fingerprint),
    payload = IF(token = VALUES(token), VALUES(payload), payload),
    remark = IF(token = VALUES(token), VALUES(remark), remark),
    actor = IF(token = VALUES(token), VALUES(actor), actor),
    updated_at = IF(token = VALUES(token), UTC_TIMESTAMP(6), updated_at)
RETURNING token, fence, epoch

-- name: group
-- The steps of many threads in one execution and one commit, in the order of the key; each
-- parameter is an array with an element for each step. An ask is inserted, or refused by the row
-- that is there. An ending is never inserted (the trigger refuses a row whose first step is an
-- ending): it changes the row as finish_sync does. The fence and token that it compares travel in
-- `fence` and `payload`, which an ending does not need. RETURNING gives each row's token, which is
-- its verdict. Exclusive asks are in no group: with two unique keys the wrong row could be updated.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
    log_no, session_id, token, fence, rev, sends, max_hold_until, send_until,
    next_run_at, fingerprint, payload, created_at, updated_at, deadline_at, channel, channel_key,
    /*include said_columns*/, channel_ref, result, proof, retryable,
    remark, actor)
VALUES (:cust_no, :serial_no, :op_code, :lane, :status, :group_step, :thread_no,
    :log_no, :session_id, :token,
    COALESCE(:ended_fence, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), fence,
        :sends,
    UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    IF(sends > 0, max_hold_until, NULL),
    GREATEST(max_hold_until, SYSDATE(6) + INTERVAL 5 SECOND), :fingerprint, :payload,
        UTC_TIMESTAMP(6), UTC_TIMESTAMP(6),
    UTC_TIMESTAMP(6) + INTERVAL :deadline_ms * 1000 MICROSECOND, :channel, :channel_key,
    /*include said_values*/, :channel_ref, :result, :proof, :retryable,
    :remark, :actor)
ON DUPLICATE KEY UPDATE
    token = IF(VALUES(step) = 'end' AND status = 'P'
        AND fence = VALUES(fence)                               -- rule fence
        AND token = VALUES(payload)                             -- rule token
        AND (VALUES(status) = 'Y' OR success_epoch IS NULL OR success_epoch <> epoch)
        AND (VALUES(status) = 'Y' OR conflict = 0 OR VALUES(proof) = 'O'),
        VALUES(token), token),
    status = IF(token = VALUES(token), VALUES(status), status),
    step = IF(token = VALUES(token), 'end', step),
    max_hold_until = IF(token = VALUES(token), NULL, max_hold_until),
    session_id = IF(token = VALUES(token), IF(repeatable = 1, NULL, session_id), session_id),
    thread_no = IF(token = VALUES(token), VALUES(thread_no), thread_no),
    log_no = IF(token = VALUES(token), VALUES(log_no), log_no),
    fence = IF(token = VALUES(token), fence + 1, fence),
    rev = IF(token = VALUES(token), rev + 1, rev),
    proof = IF(token = VALUES(token), VALUES(proof), proof),
    retryable = IF(token = VALUES(token), VALUES(retryable), retryable),
    channel_ref = IF(token = VALUES(token), COALESCE(VALUES(channel_ref), channel_ref),
        channel_ref),
    remark = IF(token = VALUES(token), COALESCE(VALUES(remark), remark), remark),
    result = IF(token = VALUES(token), VALUES(result), result),
    actor = IF(token = VALUES(token), VALUES(actor), actor),
    updated_at = IF(token = VALUES(token), UTC_TIMESTAMP(6), updated_at)
RETURNING token, fence, epoch

-- name: group_repeatable
-- The same with asks for repeatable trades among them, which do as ask_repeatable. It stands alone
-- since the server prepares each expression anew for each execution, and most groups have no such
-- ask.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
    log_no, session_id, token, fence, rev, sends, repeatable, max_hold_until,
    send_until, next_run_at, fingerprint, payload, created_at, updated_at, deadline_at, channel,
    channel_key, /*include said_columns*/, channel_ref, result, proof,
    retryable, remark, actor)
VALUES (:cust_no, :serial_no, :op_code, :lane, :status, :group_step, :thread_no,
    :log_no, :session_id, :token,
    COALESCE(:ended_fence, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), fence,
        :sends,
    IF(step = 'reask', 1, 0),
    UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    IF(sends > 0, max_hold_until, NULL),
    IF(step = 'ask', GREATEST(max_hold_until, SYSDATE(6) + INTERVAL 5 SECOND), NULL),
        :fingerprint, :payload, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6),
    UTC_TIMESTAMP(6) + INTERVAL :deadline_ms * 1000 MICROSECOND, :channel,
    :channel_key, /*include said_values*/, :channel_ref, :result, :proof,
    :retryable, :remark, :actor)
ON DUPLICATE KEY UPDATE
    token = IF((VALUES(step) = 'end' AND status = 'P'
        AND fence = VALUES(fence)                               -- rule fence
        AND token = VALUES(payload)                             -- rule token
        AND (VALUES(status) = 'Y' OR success_epoch IS NULL OR success_epoch <> epoch)
        AND (VALUES(status) = 'Y' OR conflict = 0 OR VALUES(proof) = 'O'))
        OR (VALUES(step) = 'reask' AND repeatable = 1
        AND (status = 'F' OR (status = 'Y' AND lane = 'S')
            OR (status = 'P' AND (session_id IS NULL
            )))),
        VALUES(token), token),
    step = IF(token = VALUES(token), VALUES(step), step),
    status = IF(token = VALUES(token), IF(step = 'reask', 'P', VALUES(status)), status),
    max_hold_until = IF(token = VALUES(token), IF(step = 'reask', VALUES(max_hold_until), NULL),
        max_hold_until),
    session_id = IF(token = VALUES(token), IF(step = 'reask', VALUES(session_id),
        IF(repeatable = 1, NULL, session_id)), session_id),
    thread_no = IF(token = VALUES(token), VALUES(thread_no), thread_no),
    log_no = IF(token = VALUES(token), VALUES(log_no), log_no),
    fence = IF(token = VALUES(token), fence + 1, fence),
    rev = IF(token = VALUES(token), rev + 1, rev),
    proof = IF(token = VALUES(token), IF(step = 'reask', '-', VALUES(proof)), proof),
    retryable = IF(token = VALUES(token), IF(step = 'reask', retryable, VALUES(retryable)),
        retryable),
    channel_ref = IF(token = VALUES(token), IF(step = 'reask', channel_ref,
        COALESCE(VALUES(channel_ref), channel_ref)), channel_ref),
    remark = IF(token = VALUES(token), IF(step = 'reask', VALUES(remark), COALESCE(VALUES(remark),
        remark)), remark),
    result = IF(token = VALUES(token), IF(step = 'reask', NULL, VALUES(result)), result),
    actor = IF(token = VALUES(token), VALUES(actor), actor),
    updated_at = IF(token = VALUES(token), UTC_TIMESTAMP(6), updated_at),
    epoch = IF(token = VALUES(token), IF(step = 'reask', epoch + 1, epoch), epoch),
    sends = IF(token = VALUES(token), IF(step = 'reask', VALUES(sends), sends), sends),
    next_run_at = IF(token = VALUES(token), IF(step = 'reask', NULL, next_run_at), next_run_at),
    send_until = IF(token = VALUES(token), IF(step = 'reask', IF(VALUES(sends) > 0,
        VALUES(max_hold_until), NULL), send_until), send_until),
    fingerprint = IF(token = VALUES(token), IF(step = 'reask', VALUES(fingerprint), fingerprint),
        fingerprint),
    payload = IF(token = VALUES(token), IF(step = 'reask', VALUES(payload), payload), payload)
RETURNING token, fence, epoch
