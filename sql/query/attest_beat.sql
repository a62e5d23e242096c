-- Whether the beat of a session that had been confirmed is here.  Those that came while a restore was
-- open do not count.
SELECT x.beat - b.waited >= :beat FROM tl_session x
JOIN tl_beat b ON b.session_id = x.session_id
WHERE x.session_id = :session_id
