-- Whether the beat of a session that had been confirmed is here.
SELECT beat >= :beat FROM tl_session WHERE session_id = :session_id
