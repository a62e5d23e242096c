-- A holder releases, or a writer stops waiting.  The token belongs to one grant only, so a row that
-- was freed meanwhile is not changed, whoever has it now.
UPDATE resource_holder
SET status = 'F', step = :step, thread_no = :thread_no, log_no = :log_no, session_id = NULL,
    token = :token,
    rev = rev + 1, over_at = NULL, max_hold_until = NULL,
    released_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND slot = :slot AND token = :held_token AND status <> 'F'
