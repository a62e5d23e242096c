-- Purges one page of lease mutexes, or only counts what would go; the procedure decides what may go
-- and commits by itself.
CALL tl_purge_mutexes(:only_counts, :older_ms, :most, :after, @tl_purged)
