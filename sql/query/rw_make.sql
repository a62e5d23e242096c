-- The first ask for a resource makes its row, in a transaction of its own.  An ask that comes at
-- the same moment finds the row there.
INSERT INTO rw_lock (resource, created_at) VALUES (:resource, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE resource = VALUES(resource)
