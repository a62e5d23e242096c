-- A writer becomes a reader: it lets others in and loses nothing, so it needs no gate, and a second
-- time changes nothing.
UPDATE resource_holder
SET kind = 'R', step = 'downgrade', thread_no = :thread_no, log_no = :log_no, rev = rev + 1,
    updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND slot = :slot AND token = :held_token AND status IN ('H', 'D')
    AND over_at > UTC_TIMESTAMP(6)
