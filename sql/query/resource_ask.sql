-- Asks for lease mutexes, the first time and every later one.  It takes a row that is unlocked, with
-- a higher fence.  It leaves a holder's row exactly as it is, and one with a minimum hold, so a
-- refusal writes nothing.  The token is assigned first; it tells the later assignments, and the
-- caller, whether the row was taken.
-- Neither sessions nor the clock are looked at here: a subquery of an INSERT would lock the holder's
-- session row, and delay its heartbeat for as long as this transaction lasts, and the clock may have
-- been set.  A caller that was refused reads the rows.  If it finds a holder dead, or a minimum hold
-- over, it names the row in the last parameter, by the rev that it saw: '  name rev  name rev  '.
-- Several rows are locked in the order given; a caller that does not get all of them rolls back.
INSERT INTO resource_lock (resource, status, step, thread_no, log_no, session_id, token,
    fence, rev, lease_until, max_hold_until, free_at, payload, remark, actor, locked_at,
    created_at, updated_at)
VALUES /*rows(*/(:resource, 'L', 'lock', :thread_no, :log_no, :session_id, :token,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), fence,
    UTC_TIMESTAMP(6) + INTERVAL :lease_ms * 1000 MICROSECOND,
    UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    UTC_TIMESTAMP(6) + INTERVAL :min_hold_ms * 1000 MICROSECOND, :payload, :remark, :actor,
    UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))/*)rows*/
ON DUPLICATE KEY UPDATE
    token = IF((status = 'U' AND free_at IS NULL)
            OR LOCATE(CONCAT('  ', resource, ' ', rev, '  '), :dead) > 0,
        VALUES(token), token),
    step = IF(token = VALUES(token), IF(status = 'U', 'lock', 'take over'), step),
    status = IF(token = VALUES(token), 'L', status),
    thread_no = IF(token = VALUES(token), VALUES(thread_no), thread_no),
    log_no = IF(token = VALUES(token), VALUES(log_no), log_no),
    session_id = IF(token = VALUES(token), VALUES(session_id), session_id),
    fence = IF(token = VALUES(token), fence + 1, fence),
    rev = IF(token = VALUES(token), rev + 1, rev),
    lease_until = IF(token = VALUES(token), VALUES(lease_until), lease_until),
    max_hold_until = IF(token = VALUES(token), VALUES(max_hold_until), max_hold_until),
    free_at = IF(token = VALUES(token), VALUES(free_at), free_at),
    payload = IF(token = VALUES(token), VALUES(payload), payload),
    remark = IF(token = VALUES(token), VALUES(remark), remark),
    actor = IF(token = VALUES(token), VALUES(actor), actor),
    locked_at = IF(token = VALUES(token), VALUES(locked_at), locked_at),
    updated_at = IF(token = VALUES(token), VALUES(updated_at), updated_at)
RETURNING token, fence
