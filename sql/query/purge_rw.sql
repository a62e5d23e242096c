-- Purges one page of read-write locks, or only counts what would go; the procedure decides what may
-- go and commits by itself.
CALL tl_purge_rw_locks(:only_counts, :older_ms, :most, :after, @tl_purged)
