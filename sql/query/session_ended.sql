-- Why a beat found no living row: the session was ended, or its row is gone.  A row is gone only if
-- somebody removed it by hand or the database was restored.
SELECT ended_at IS NOT NULL FROM tl_session WHERE session_id = :session_id
