-- Writes that a session is swept: nothing of it is in process any more.  A row that the dead
-- process still commits afterwards is found when its max_hold is over.
UPDATE tl_session SET swept_at = UTC_TIMESTAMP(6)
WHERE session_id = :session_id AND ended_at IS NOT NULL AND swept_at IS NULL
