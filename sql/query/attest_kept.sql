-- Whether this server answers a commit only when another one has it, and never stops waiting for
-- that; and of which Galera cluster it is ('': of none), the number of that one's membership, for how
-- many seconds the server has been up, its own id, and who is on record as the one that has the
-- commits (tl_kept; NULL: nobody).
--
-- With semi-synchronous replicas: it has one, and waits for a day at least.  With several,
-- asynchronous ones among them, nobody can tell which of them has a commit.
-- With Galera: each node of the primary component has a commit before it is answered; alone it would
-- say nothing.  An arbitrator counts in the cluster's size and keeps no rows; it has no address for
-- clients, so its item in the list of those is empty.  A node that is bound to several addresses has
-- an item with commas in it: unless the commas are as many as stand between the members, nobody can
-- tell how many keep rows, and it does not count as kept.  The number rises with every change of the
-- membership, and begins anew where a node is started to make a cluster, which may lack what others
-- had answered.  It does not where a person tells a node that runs to be one (pc.bootstrap).
SELECT (k.galera AND k.size > 1 AND k.nodes REGEXP '[^,],+[^,]'
        AND LENGTH(k.nodes) - LENGTH(REPLACE(k.nodes, ',', '')) + 1 = k.size)
    OR (@@rpl_semi_sync_master_enabled = 1
        AND @@rpl_semi_sync_master_wait_point = 'AFTER_SYNC'
        AND @@rpl_semi_sync_master_wait_no_slave = 1
        AND @@rpl_semi_sync_master_timeout >= 86400000 AND k.semi_sync),
    IF(k.galera, k.cluster, ''), k.membership, k.up_s, @@server_id, r.reason
FROM (SELECT
        COALESCE(SUM(variable_name = 'WSREP_READY' AND variable_value = 'ON'), 0) = 1
            AND COALESCE(SUM(variable_name = 'WSREP_CLUSTER_STATUS'
                AND variable_value = 'Primary'), 0) = 1 AS galera,
        MAX(IF(variable_name = 'WSREP_CLUSTER_SIZE', CAST(variable_value AS SIGNED), 0)) AS size,
        MAX(IF(variable_name = 'WSREP_INCOMING_ADDRESSES', variable_value, '')) AS nodes,
        COALESCE(SUM(variable_name = 'RPL_SEMI_SYNC_MASTER_STATUS' AND variable_value = 'ON'), 0) = 1
            AND COALESCE(SUM(variable_name IN ('RPL_SEMI_SYNC_MASTER_CLIENTS', 'SLAVES_CONNECTED')
                AND CAST(variable_value AS UNSIGNED) > 1), 0) = 0 AS semi_sync,
        MAX(IF(variable_name = 'WSREP_CLUSTER_STATE_UUID', variable_value, '')) AS cluster,
        MAX(IF(variable_name = 'WSREP_CLUSTER_CONF_ID', CAST(variable_value AS UNSIGNED), 0))
            AS membership,
        MAX(IF(variable_name = 'UPTIME', CAST(variable_value AS UNSIGNED), 0)) AS up_s
    FROM information_schema.global_status
    WHERE variable_name IN ('RPL_SEMI_SYNC_MASTER_STATUS', 'RPL_SEMI_SYNC_MASTER_CLIENTS',
        'SLAVES_CONNECTED', 'WSREP_READY', 'WSREP_CLUSTER_STATUS', 'WSREP_CLUSTER_SIZE',
        'WSREP_INCOMING_ADDRESSES', 'WSREP_CLUSTER_STATE_UUID', 'WSREP_CLUSTER_CONF_ID', 'UPTIME')) k
JOIN tl_schema s ON s.one = 1
LEFT JOIN tl_restore r ON r.restore_no = s.accepted_no AND r.step = 'kept'
