-- In the caller's transaction: is the lock still held?  This locks the row, so the answer stays
-- true until that transaction ends.  The holder's session is not read here: in a serializable
-- transaction that would lock the session's row and stop its heartbeat.
SELECT token = :held_token AND fence = :fence AND status IN ('H', 'D')
    AND over_at > UTC_TIMESTAMP(6)
    AS held
FROM resource_holder
WHERE resource = :resource AND slot = :slot
FOR UPDATE
