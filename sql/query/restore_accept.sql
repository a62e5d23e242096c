-- The server is accepted as it is; asks are granted again.
UPDATE tl_schema
SET restored_at = NULL,
    server_identity = CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir)
WHERE one = 1
