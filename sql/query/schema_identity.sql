-- Writes, once, on which server the schema was made.  tl_identity() tells the same, but somebody
-- may have dropped it.
UPDATE tl_schema
SET identity = CONCAT_WS(' ', @@hostname, @@server_id, @@datadir)
WHERE one = 1 AND identity IS NULL
