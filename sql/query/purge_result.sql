-- The result of the last page that this connection purged.
SELECT @tl_purged
