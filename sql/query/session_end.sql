-- The owner ends its session, and says whether it left no trade in process.  told = 0: it knows of
-- no commit that this server could lack, or never lived under this name; so nobody asks it where it
-- ended.
UPDATE tl_session
SET ended_at = UTC_TIMESTAMP(6),
    ended_on = IF(:told, CONCAT_WS(' ', @@hostname, @@server_id, @@datadir), ''),
    ended_no = (SELECT accepted_no FROM tl_schema WHERE one = 1), ended_by = session_id,
    settled = :settled
WHERE session_id = :session_id AND ended_at IS NULL
