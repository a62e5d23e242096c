-- Counts the sessions that a purge would remove; the procedure decides which.
CALL tl_purge_sessions_count(:older_ms, @tl_purged_sessions)
