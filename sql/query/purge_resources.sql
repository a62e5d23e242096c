-- One page of purging mutexes' rows; the procedure decides what may go and commits by itself.
CALL tl_purge_resources(:older_ms, :most, :after, @tl_purged)
