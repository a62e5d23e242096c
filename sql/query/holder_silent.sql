-- How long ago the last beat of a session that nobody has ended was, in milliseconds.
SELECT GREATEST(0, TIMESTAMPDIFF(MICROSECOND,
    alive_until - INTERVAL timeout_ms * 1000 MICROSECOND, UTC_TIMESTAMP(6)) DIV 1000)
FROM tl_session
WHERE session_id = :session_id AND ended_at IS NULL
