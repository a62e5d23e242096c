-- The owner ends its session.
UPDATE tl_session
SET ended_at = UTC_TIMESTAMP(6), ended_by = session_id
WHERE session_id = ? AND ended_at IS NULL
