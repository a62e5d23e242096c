-- A holder releases, or a writer stops waiting.  The token belongs to one grant only, so a row that
-- was freed meanwhile is not met, whoever has it now.
UPDATE resource_holder
SET status = 'F', step = ?, thread_no = ?, log_no = ?, session_id = NULL, token = ?,
    rev = rev + 1, over_at = NULL, max_hold_until = NULL,
    released_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6)
WHERE resource = ? AND slot = ? AND token = ? AND status <> 'F'
