-- A session says that nothing begins in its process any more because of the drain that was decided
-- at this moment.
UPDATE tl_session SET obeys_us = :since_us WHERE session_id = :session_id AND ended_at IS NULL
