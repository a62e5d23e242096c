-- One page of purging; the procedure decides what may go and commits by itself.
CALL tl_purge(?, ?, ?, ?, ?, @tl_purged)
