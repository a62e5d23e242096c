-- Ended sessions whose lanes may not all be open yet.
SELECT session_id
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NOT NULL
LIMIT 64
