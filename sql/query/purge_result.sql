-- What the last page of purging came to, on this connection.
SELECT @tl_purged
