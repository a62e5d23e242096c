-- Ended sessions whose lanes may not all be open yet.  A settled one left none, by its owner's own
-- word: holders of read-write locks alone are looked for.  Was it wrong, the trade is found when
-- its max_hold is over.
SELECT session_id, settled
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NOT NULL
LIMIT 64
