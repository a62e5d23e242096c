-- The id of the connection that has this name.  NULL: the connection is gone, and what it was doing
-- is rolled back.
--
-- And whether it commits where commits wait for a replica. Such a wait is never ended: the server
-- would answer all commits that share it, of other connections and processes too, which no replica
-- has.
SELECT IS_USED_LOCK(:name), COALESCE(MAX(@@rpl_semi_sync_master_enabled = 1
    AND (state = 'Commit' OR state LIKE 'Waiting for semi-sync ACK%')), 0)
FROM information_schema.processlist
WHERE id = IS_USED_LOCK(:name)
