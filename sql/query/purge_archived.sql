-- Removes the trades of a page that was named, and is in an archive; the procedure judges each anew,
-- leaves alone what changed since, puts the set on record, and commits by itself.  A second call finds nothing of it.
CALL tl_purge_archived(:older_ms, :named, :sha, :before_sha, :set_no, @tl_purged)
