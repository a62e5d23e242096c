-- Makes the row of a resource, on a connection of the library's own; it is committed before anybody
-- locks the row.
INSERT INTO row_lock (resource, created_at) VALUES (:resource, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE resource = VALUES(resource)
