-- Frees the dead holders of a resource: writers, and readers if they are in the way.  A holder that
-- renews at this moment has its row locked, or is found alive.  One whose transaction has written
-- "business done" keeps its row until that transaction ends.  A holder that comes too late fails on
-- the token. Sessions are read without a lock: ended_at was committed before and is never taken
-- back.  But they are read as of one moment, and each holder as it is when the statement comes to
-- it.  A session that seems absent may have begun since that moment, so a holder that came since is
-- left alone.
UPDATE resource_holder
SET status = 'F', step = 'reap', thread_no = :thread_no, session_id = NULL, token = :token,
    rev = rev + 1, over_at = NULL, max_hold_until = NULL, actor = :actor,
    released_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND status <> 'F' AND (kind = 'W' OR :readers_too = 1)
    AND (over_at <= LEAST(UTC_TIMESTAMP(6), CAST('1970-01-01' AS DATETIME(6))
            + INTERVAL :latest_us MICROSECOND)
        OR (by_session = 1 AND acquired_at < UTC_TIMESTAMP(6)
            AND NOT EXISTS (SELECT 1 FROM tl_session x
                WHERE x.session_id = resource_holder.session_id AND x.ended_at IS NULL)))
