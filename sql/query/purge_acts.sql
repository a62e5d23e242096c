-- Purges a page of acts with their rows; the procedure decides which.
CALL tl_purge_acts(:older_ms, :most, @tl_purged_acts)
