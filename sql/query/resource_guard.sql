-- In the caller's transaction: is the lock still held?  The row lock keeps it so until that
-- transaction ends, since everybody who takes the lock over changes this row.  The holder's session
-- is not read here: in a serializable transaction the read would lock its row and stop its
-- heartbeat.
SELECT token = :token AND fence = :fence AND status = 'L' AND max_hold_until > UTC_TIMESTAMP(6)
    AND (lease_until IS NULL OR lease_until > UTC_TIMESTAMP(6)) AS held
FROM resource_lock
WHERE resource = :resource
FOR UPDATE
