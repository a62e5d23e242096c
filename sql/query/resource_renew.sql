-- The holder sets the end of its lease anew, never beyond the end of its hold.  A lease that is
-- over is not revived: others may be told already that the lock is free.
UPDATE resource_lock
SET step = 'renew', thread_no = :thread_no, log_no = :log_no, rev = rev + 1,
    lease_until = LEAST(UTC_TIMESTAMP(6) + INTERVAL :lease_ms * 1000 MICROSECOND, max_hold_until),
    updated_at = UTC_TIMESTAMP(6)
WHERE token = :held_token AND status = 'L' AND max_hold_until > UTC_TIMESTAMP(6)
    AND (lease_until IS NULL OR lease_until > UTC_TIMESTAMP(6))
    AND resource IN (/*rows(*/:resource/*)rows*/)
