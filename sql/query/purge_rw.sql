-- One page of purging read-write locks; the procedure decides what may go and commits by itself.
CALL tl_purge_rw(?, ?, ?, @tl_purged)
