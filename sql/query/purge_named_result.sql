-- The result of the last purge_named.sql of this connection.
SELECT @tl_purged, @tl_named
