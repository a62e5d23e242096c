-- What tells one server from another: a copy that was promoted or restored elsewhere has
-- another host, id or directory.
SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir)
