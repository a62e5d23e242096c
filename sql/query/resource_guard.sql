-- In the caller's transaction: is the lock still held?  This locks the row until that transaction
-- ends, and whoever takes the lock over must change the row.  So the answer stays true.  The
-- holder's session is not read here: in a serializable transaction that would lock the session's
-- row and stop its heartbeat.
SELECT token = :token AND fence = :fence AND status = 'L' AND max_hold_until > UTC_TIMESTAMP(6)
    AND (lease_until IS NULL OR lease_until > UTC_TIMESTAMP(6)) AS held
FROM resource_lock
WHERE resource = :resource
FOR UPDATE
