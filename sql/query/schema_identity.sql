-- The server on which the schema was made, written once.
UPDATE tl_schema
SET identity = tl_identity(),
    server_identity = CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir)
WHERE one = 1 AND identity IS NULL
