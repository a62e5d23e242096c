-- A writer becomes a reader.  It only lets others in, so it needs no gate; a second run changes
-- nothing.
UPDATE resource_holder
SET kind = 'R', step = 'downgrade', thread_no = :thread_no, log_no = :log_no, rev = rev + 1,
    updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND slot = :slot AND token = :held_token AND status IN ('H', 'D')
    AND over_at > UTC_TIMESTAMP(6)
