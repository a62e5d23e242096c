-- An observer that saw no beat for a whole time-out ends the session.  This is committed by itself,
-- before any of the session's locks is touched.  A beat that came meanwhile wins.
UPDATE tl_session
SET ended_at = UTC_TIMESTAMP(6), ended_on = CONCAT_WS(' ', @@hostname, @@server_id, @@datadir),
    ended_no = (SELECT accepted_no FROM tl_schema WHERE one = 1), ended_by = :observer
WHERE session_id = :session_id AND beat + waits = :beat AND ended_at IS NULL
