-- What a beat found: whether the session was ended, and the number of its last beat; a lower one than
-- was confirmed before shows that the database went back in time.  A row is gone only if somebody
-- removed it by hand or the database was restored.
SELECT ended_at IS NOT NULL, beat FROM tl_session WHERE session_id = :session_id
