-- A session says that nothing begins in its process any more because of the drain that was decided
-- at this moment: its heartbeat's connection takes that name until it ends.  0: an earlier
-- connection of the session has not ended yet, and says the same.
SELECT GET_LOCK(CONCAT('tl:drain:', :session_id, ':', :since_us), 0)
