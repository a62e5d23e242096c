-- A commit that comes after all that this connection has read.  A primary that waits for its replicas
-- answers it only when they have it, and with it all that was committed before.
UPDATE tl_session SET beat = beat + 1 WHERE session_id = :session_id
