-- Whether this server may have lost commits: an operator declared a restore, or it is
-- another server than the one that was accepted (a promoted or copied one).
SELECT restored_at IS NOT NULL
    OR server_identity <> CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir)
FROM tl_schema WHERE one = 1
