-- The server on which the schema was made, written once; as tl_identity() says it, which somebody
-- may have dropped.
UPDATE tl_schema
SET identity = CONCAT_WS(' ', @@hostname, @@server_id, @@datadir),
    server_identity = CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir)
WHERE one = 1 AND identity IS NULL
