-- An operator frees one holder, or a waiting writer, behind the gate.  The statement is bound to
-- the fence that was seen.  The old holder then fails on the new token; the new fence is above
-- every grant's, so the next grant's fence is above this step.
UPDATE resource_holder
SET status = 'F', step = 'force unlock', thread_no = :thread_no, log_no = :log_no,
    session_id = NULL,
    token = :token, fence = :fence, rev = rev + 1, over_at = NULL, max_hold_until = NULL,
    remark = :remark, actor = :actor, released_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND slot = :slot AND fence = :seen_fence AND status <> 'F'
