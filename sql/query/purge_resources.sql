-- Purges one page of lease mutexes; the procedure decides what may go and commits by itself.
CALL tl_purge_resources(:older_ms, :most, :after, @tl_purged)
