-- The row of a resource, made on a connection of the library's own and committed before anybody
-- locks it.
INSERT INTO row_lock (resource, created_at) VALUES (:resource, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE resource = VALUES(resource)
