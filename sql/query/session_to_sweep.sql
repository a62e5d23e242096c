-- Ended sessions whose lanes may not all be open yet.  The owner of a settled session wrote that it
-- left no trade in process, so only its holders of read-write locks are searched for.  If the owner
-- was wrong, the trade is found when its max_hold is over.
SELECT session_id, settled
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NOT NULL
LIMIT 64
