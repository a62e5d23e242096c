-- The oldest open transaction of this database that holds row locks: its connection, whose it is,
-- for how long in microseconds, and whether it commits where commits wait for a replica.  Those of other databases have nothing to do with it.  The server
-- refuses this to an account without the right PROCESS.
SELECT t.trx_mysql_thread_id, p.user, SUBSTRING_INDEX(p.host, ':', 1),
    TIMESTAMPDIFF(SECOND, t.trx_started, NOW()) * 1000000,
    COALESCE(@@rpl_semi_sync_master_enabled = 1
        AND (p.state = 'Commit' OR p.state LIKE 'Waiting for semi-sync ACK%'), 0)
FROM information_schema.innodb_trx t
JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
WHERE t.trx_rows_locked > 0 AND p.db = DATABASE() AND t.trx_mysql_thread_id <> CONNECTION_ID()
ORDER BY t.trx_started LIMIT 1
