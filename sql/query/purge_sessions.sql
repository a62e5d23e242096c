-- Purges a batch of sessions that ended and were swept long ago; the procedure decides which.
CALL tl_purge_sessions(:older_ms, :most, @tl_purged_sessions)
