-- The first ask for a resource makes its row, in a transaction of its own; whoever comes at the
-- same moment finds it there.
INSERT INTO rw_lock (resource, created_at) VALUES (:resource, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE resource = VALUES(resource)
