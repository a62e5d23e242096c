-- What an observer compares from beat to beat, and whose session it is.
SELECT session_id, beat + waits, timeout_ms, CONCAT(program, ' ', pid, '@', host)
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NULL AND session_id <> :session_id
