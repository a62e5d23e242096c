-- A batch of the sessions that were over and swept long ago; the procedure decides.
CALL tl_purge_sessions(:older_ms, :most, @tl_purged_sessions)
