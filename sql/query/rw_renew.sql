-- The holder sets the end of its lease anew, never beyond the end of its hold.  A lease that is
-- over is not revived.
UPDATE resource_holder
SET step = 'renew', thread_no = :thread_no, log_no = :log_no, rev = rev + 1, by_session = 0,
    over_at = LEAST(UTC_TIMESTAMP(6) + INTERVAL :over_ms * 1000 MICROSECOND, max_hold_until),
    updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND slot = :slot AND token = :held_token AND status IN ('H', 'D')
    AND over_at > UTC_TIMESTAMP(6)
