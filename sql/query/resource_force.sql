-- An operator takes the lock from its holder, or lifts a minimum hold.  The statement is bound to
-- the fence that was seen; the old holder then fails on the new fence and token.
UPDATE resource_lock
SET status = 'U', step = 'force unlock', thread_no = :thread_no, log_no = :log_no,
    session_id = NULL, lease_until = NULL, max_hold_until = NULL, free_at = NULL, token = :token,
    fence = fence + 1, rev = rev + 1, remark = :remark, actor = :actor,
    updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND fence = :seen_fence AND (status = 'L' OR free_at > UTC_TIMESTAMP(6))
