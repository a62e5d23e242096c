-- Whether this server answers a commit only when its one replica has it, and waits for that for a
-- day at least.  With several replicas, asynchronous ones among them, the one that has it need not be
-- the one that is promoted.
SELECT @@rpl_semi_sync_master_enabled = 1 AND @@rpl_semi_sync_master_wait_point = 'AFTER_SYNC'
    AND @@rpl_semi_sync_master_wait_no_slave = 1
    AND @@rpl_semi_sync_master_timeout >= 86400000
    AND COALESCE(SUM(variable_name = 'RPL_SEMI_SYNC_MASTER_STATUS' AND variable_value = 'ON'), 0) = 1
    AND COALESCE(SUM(variable_name = 'RPL_SEMI_SYNC_MASTER_CLIENTS'
        AND CAST(variable_value AS UNSIGNED) > 1), 0) = 0
    AND COALESCE(SUM(variable_name = 'SLAVES_CONNECTED'
        AND CAST(variable_value AS UNSIGNED) > 1), 0) = 0
FROM information_schema.global_status
WHERE variable_name IN ('RPL_SEMI_SYNC_MASTER_STATUS', 'RPL_SEMI_SYNC_MASTER_CLIENTS',
    'SLAVES_CONNECTED')
