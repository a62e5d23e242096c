-- Purges one page of read-write locks; the procedure decides what may go and commits by itself.
CALL tl_purge_rw(:older_ms, :most, :after, @tl_purged)
