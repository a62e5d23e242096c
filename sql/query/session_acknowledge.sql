-- A commit that comes after all that this connection has read.  A primary that waits for its replicas
-- answers it only when they have it, and with it all that was committed before.  It is no beat: by
-- their number a process tells which of its commits a promoted server has.
UPDATE tl_session SET alive_until = alive_until + INTERVAL 1 MICROSECOND
WHERE session_id = :session_id
