-- Frees the dead holders of a resource: the writers, and the readers where they are in the way.  A
-- holder who renews at this moment has the row locked, or is met alive; one whose transaction has
-- written "business done" keeps the row until that has ended; and a holder who comes too late fails
-- on the token.  Sessions are read without a lock; ended_at was committed before and never comes
-- back.  But they are read as of one moment of this statement, and holders as they are when it
-- comes to them: a session that is not there may have begun since, so a holder who came since is
-- left alone.
UPDATE resource_holder
SET status = 'F', step = 'reap', thread_no = :thread_no, session_id = NULL, token = :token,
    rev = rev + 1, over_at = NULL, max_hold_until = NULL, actor = :actor,
    released_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND status <> 'F' AND (kind = 'W' OR :readers_too = 1)
    AND (over_at <= UTC_TIMESTAMP(6)
        OR (by_session = 1 AND acquired_at < UTC_TIMESTAMP(6)
            AND NOT EXISTS (SELECT 1 FROM tl_session x
                WHERE x.session_id = resource_holder.session_id AND x.ended_at IS NULL)))
