-- How many servers keep the commits of this one, and whether a commit waits for them.  Last: how
-- read_only came to be as it is.  Names that this server does not know are simply missing.
SELECT LOWER(variable_name), variable_value
FROM information_schema.global_status
WHERE variable_name IN ('SLAVES_CONNECTED', 'SLAVES_RUNNING', 'RPL_SEMI_SYNC_MASTER_CLIENTS',
    'RPL_SEMI_SYNC_MASTER_STATUS', 'RPL_SEMI_SYNC_MASTER_NO_TIMES', 'WSREP_CLUSTER_SIZE',
    'WSREP_CLUSTER_STATUS', 'WSREP_LOCAL_STATE_COMMENT', 'WSREP_READY',
    'WSREP_INCOMING_ADDRESSES')
UNION ALL
SELECT 'read_only_origin', global_value_origin
FROM information_schema.system_variables WHERE variable_name = 'READ_ONLY'
