-- Behind the gate: a holder or a waiting writer takes a row that is free, new or its own intent.
-- Nobody else can take a free row meanwhile, since that needs the gate.
INSERT INTO resource_holder (resource, slot, kind, status, step, thread_no, log_no,
    session_id, by_session, token, fence, rev, over_at, max_hold_until, remark, actor,
    acquired_at, updated_at)
VALUES (:resource, :slot, :kind, :status, :step, :thread_no, :log_no, :session_id, :by_session,
    :token, :fence, fence,
    UTC_TIMESTAMP(6) + INTERVAL :over_ms * 1000 MICROSECOND,
    UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND, :remark, :actor, UTC_TIMESTAMP(6),
    UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE kind = VALUES(kind), status = VALUES(status), step = VALUES(step),
    thread_no = VALUES(thread_no), log_no = VALUES(log_no),
    session_id = VALUES(session_id), by_session = VALUES(by_session),
    token = VALUES(token), fence = VALUES(fence), rev = rev + 1,
    over_at = VALUES(over_at), max_hold_until = VALUES(max_hold_until),
    remark = VALUES(remark), actor = VALUES(actor), acquired_at = VALUES(acquired_at),
    done_at = NULL, released_at = NULL, updated_at = VALUES(updated_at)
