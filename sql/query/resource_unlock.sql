-- The holder releases.  All rows of a grant carry the same token and no other row does, so a row
-- that was taken over meanwhile is not changed.
UPDATE resource_lock
SET status = 'U', step = 'unlock', thread_no = :thread_no, log_no = :log_no, session_id = NULL,
    lease_until = NULL, max_hold_until = NULL, token = :token, fence = fence + 1, rev = rev + 1,
    updated_at = UTC_TIMESTAMP(6)
WHERE token = :held_token AND status = 'L' AND resource IN (/*rows(*/:resource/*)rows*/)
