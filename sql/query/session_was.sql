-- Which process a session was, and until when it lived, in microseconds; NULL: it lives.
SELECT CONCAT(program, ' ', pid, '@', host),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', ended_at)
FROM tl_session WHERE session_id = :session_id
