-- Which server this is, restores, and promotions.

-- name: attest
-- What a session found on a promoted server; see the procedure.
CALL tl_attest(:number, :session_id, :missing, :kept)

-- name: attest_accept
-- Accepts a promoted server by itself, if nothing is missing there; see the procedure.
CALL tl_accept_proved(:number)

-- name: attest_beat
-- Whether the beat of a session that had been confirmed is here.
SELECT beat >= :beat FROM tl_session WHERE session_id = :session_id

-- name: attest_clock
-- Whether the server's clock is between these moments: those at which it must be, if it agrees with
-- the clock by which the rows were written.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)
    + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND)
    BETWEEN :least_us AND :most_us

-- name: attest_evidence
-- Whether evidence that had been filed is here.  Where it is not, its number may be that of other
-- evidence, which was filed on this server since.
SELECT 1 FROM trade_evidence
WHERE evidence_id = :evidence_id AND cust_no = :cust_no AND serial_no = :serial_no
    AND op_code = :op_code AND thread_no = :thread_no

-- name: attest_filters
-- What is left out of the log: the third and the fourth column are '' if nothing is.
CALL tl_log_filters()

-- name: attest_in_step
-- Waits until this node of a Galera cluster has applied all that any node had answered before: a
-- commit that is on its way is not missing.
SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 1

-- name: attest_kept
-- Whether this server answers a commit only when another one has it, and never stops waiting for
-- that; and of which Galera cluster it is ('': of none), the number of that one's membership, for how
-- many seconds the server has been up, its own id, who is on record as the one that has the commits
-- (tl_kept; NULL: nobody), and whether it takes no writes now.
--
-- With semi-synchronous replicas: exactly one reads its log and acknowledges, and it waits for a day
-- at least.  With several, asynchronous ones among them, nobody can tell which of them has a commit;
-- nor while the one that acknowledges is away, and an asynchronous one is there.
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
    IF(k.galera, k.cluster, ''), k.membership, k.up_s, @@server_id, r.reason,
    CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF')
FROM (SELECT
        COALESCE(SUM(variable_name = 'WSREP_READY' AND variable_value = 'ON'), 0) = 1
            AND COALESCE(SUM(variable_name = 'WSREP_CLUSTER_STATUS'
                AND variable_value = 'Primary'), 0) = 1 AS galera,
        MAX(IF(variable_name = 'WSREP_CLUSTER_SIZE', CAST(variable_value AS SIGNED), 0)) AS size,
        MAX(IF(variable_name = 'WSREP_INCOMING_ADDRESSES', variable_value, '')) AS nodes,
        COALESCE(SUM(variable_name = 'RPL_SEMI_SYNC_MASTER_STATUS' AND variable_value = 'ON'), 0) = 1
            AND COALESCE(SUM(variable_name IN ('RPL_SEMI_SYNC_MASTER_CLIENTS', 'SLAVES_CONNECTED')
                AND variable_value = '1'), 0) = 2 AS semi_sync,
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

-- name: attest_list
-- What keeps a promoted server from being accepted by itself: of each session that has to attest
-- whether it did, and each commit that it lacks.
SELECT a.session_id, COALESCE(CONCAT(x.program, ' ', x.pid, '@', x.host), ''),
    a.attested_at IS NOT NULL, a.missing, a.kept, COALESCE(m.step, ''), COALESCE(m.cust_no, ''),
    COALESCE(m.serial_no, ''), COALESCE(m.op_code, ''), COALESCE(LOWER(HEX(m.token)), '')
FROM tl_attestation a
LEFT JOIN tl_attestation_missing m ON m.restore_no = a.restore_no AND m.session_id = a.session_id
LEFT JOIN tl_session x ON x.session_id = a.session_id
WHERE a.restore_no = :number AND ((a.attested_at IS NULL AND COALESCE(x.ended_on <> '', 1))
    OR a.missing > 0 OR a.kept = 0)
ORDER BY a.session_id, m.item

-- name: attest_missing
-- A commit that a session was told of, and that the promoted server lacks.
CALL tl_attest_missing(:number, :session_id, :item, :step, :cust_no, :serial_no, :op_code, :token)

-- name: attest_record
-- Puts on record who has this server's commits, unless somebody is; says who is.
CALL tl_kept(:keeper)

-- name: attest_replicas
-- The servers that read this one's log: the first column is the id of each.
CALL tl_replicas()

-- name: connection_used
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

-- name: blockers
-- Who holds up asks and heartbeats: connection, account, age in microseconds, statement or NULL,
-- whether it commits where commits wait for a replica, and whether it is about tables.
SET STATEMENT lock_wait_timeout = 0 FOR CALL tl_blockers()

-- name: replica_connections
-- Whom this server replicates: the first column is the connection's name, '' of the unnamed one.
CALL tl_connections()

-- name: replica_awaited
-- How many commits have waited for a replica for so long; of this account alone, unless it may see
-- the processes of others.  Of what is replicated here the time is its lag.
SELECT COUNT(*) FROM information_schema.processlist
WHERE @@rpl_semi_sync_master_enabled = 1 AND time_ms >= :waited_ms
    AND user <> 'system user' AND (state = 'Commit' OR state LIKE 'Waiting for semi-sync ACK%')

-- name: restore_carry_out
-- The rest of the transaction that confirms a restore; the procedure checks that two operators did.
-- It waits for each row, since under load some row is always locked.  A transaction that has such a
-- row and wants the schema's row is a deadlock; the server ends one of the two, and this is run
-- again.
SET STATEMENT innodb_lock_wait_timeout = 5 FOR
CALL tl_restore_accept(:max_hold_ms, :thread_no)

-- name: restore_declare
-- From now on nothing is granted, armed or failed on this database; the lane only asks.  Declared, or
-- promoted: then a trigger checks that this is another server than the accepted one, and writes which
-- sessions have to attest.
INSERT INTO tl_restore (step, reason, actor) VALUES (:how, :reason, :actor)

-- name: restore_found
-- A program has found that this database is not the accepted one; see the procedure.
CALL tl_restore_found(:accepted, :why)

-- name: restore_half
-- Appends one half of accepting: proposed, or confirmed.  The server tells whose it is: the column
-- `account` has CURRENT_USER() as its default, and operators have no right to write it.
INSERT INTO tl_restore (restore_no, step, reason, actor) VALUES (:number, :half, :reason, :actor)

-- name: restore_status
-- The restore that is open, or the last one: since when steps may be missing, how it became known, on
-- which server, who proposed to accept it and who confirmed that; and whether it became known on
-- this server.
SELECT tl_restored() AS restored, s.restore_no, s.accepted_no,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.accepted_at) AS accepted_us,
    COALESCE(s.identity, '') AS was, tl_identity() AS is_now,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', f.decided_at) AS since_us, o.step,
    o.reason, COALESCE(o.actor, '') AS actor, o.account, p.reason AS proposal,
    COALESCE(p.actor, '') AS proposer, p.account AS proposer_account,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', p.decided_at) AS proposed_us,
    tl_account_name(p.account) <=> tl_account_name(CURRENT_USER()) AS own_proposal,
    COALESCE(p.identity <> tl_identity(), 0) AS proposed_elsewhere,
    c.account AS confirmer_account,
    tl_account_name(c.account) <=> tl_account_name(CURRENT_USER()) AS own_confirmation, c.doubtful,
    COALESCE(o.identity = tl_identity(), 0) AS is_here
FROM tl_schema s
LEFT JOIN tl_restore o FORCE INDEX (PRIMARY) ON o.restore_no = s.restore_no
    AND o.step IN ('declared', 'found', 'promoted')
LEFT JOIN tl_restore f FORCE INDEX (PRIMARY) ON f.restore_no = s.accepted_no + 1
    AND f.step IN ('declared', 'found', 'promoted')
LEFT JOIN tl_restore p ON p.restore_no = s.restore_no AND p.step = 'proposed'
LEFT JOIN tl_restore c ON c.restore_no = s.restore_no AND c.step = 'confirmed'
WHERE one = 1

-- name: restore_trades
-- What accepting would put in doubt: trades in process by operation and state, and their amounts by
-- currency ('': none was said; a sum is DECIMAL, which does not overflow).  Which other locks it
-- would take away.  And which payments without a trade it makes trades of, by account and currency.
-- It walks the tables, for an operator who is about to decide.
SELECT op_code, state, COUNT(*), NULL AS currency, NULL AS sum_minor FROM trade_lock_state
WHERE lane = 'S' AND status = 'P' AND repeatable = 0
GROUP BY op_code, state
UNION ALL
SELECT '', '', COUNT(*), COALESCE(currency, ''), CAST(SUM(amount_minor) AS CHAR) FROM trade_lock
WHERE lane = 'S' AND status = 'P' AND repeatable = 0
GROUP BY currency
UNION ALL
SELECT '', 'mutexes', COUNT(*), NULL, NULL FROM resource_lock WHERE status = 'L'
UNION ALL
SELECT '', 'readers and writers', COUNT(*), NULL, NULL FROM resource_holder WHERE status <> 'F'
UNION ALL
SELECT '', e.account, COUNT(*), COALESCE(e.currency, ''), CAST(SUM(e.amount_minor) AS CHAR)
FROM trade_evidence_lost e
GROUP BY e.account, e.currency
ORDER BY 1, 2, 4

-- name: server_cluster
-- Whether this server has its rows in common with others that take writes (Galera): what is written
-- down here all of them read at once.
SELECT COUNT(*) FROM information_schema.global_variables
WHERE variable_name = 'WSREP_ON' AND variable_value = 'ON'

-- name: server_kin
-- All servers that are on record as accepted here, or as one where a restore was found: those of one
-- installation have some of them in common, since copies begin with the same record.
SELECT identity FROM tl_schema WHERE one = 1
UNION SELECT was FROM tl_restore
UNION SELECT identity FROM tl_restore

-- name: server_restored
-- Whether this server may have lost commits, and whether that is written down for it; which restore
-- was accepted last, and when; and the witness.  The witness is a session of which this process had
-- a beat confirmed, a given number of milliseconds ago: its beat in this database (NULL: the
-- session is gone), and whether a restore was accepted since that beat.  Then which server this is,
-- and whether it takes no writes.  Last: the number under which it was promoted, 0 if it was not, or
-- something else was declared or found since; whether the last accepting was by itself; and whether
-- it has a binary log, and semi-synchronous replicas may be waited for.
SELECT tl_restored(), r.restore_no IS NOT NULL, s.accepted_no,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.accepted_at), x.beat,
    COALESCE(s.accepted_at > UTC_TIMESTAMP(6) - INTERVAL :age_ms * 1000 MICROSECOND, 0),
    tl_identity(), CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF'),
    IF(r.step = 'promoted', s.restore_no, 0), p.restore_no IS NOT NULL,
    @@log_bin + (@@log_bin AND @@rpl_semi_sync_master_enabled)
FROM tl_schema s
LEFT JOIN tl_restore r FORCE INDEX (PRIMARY) ON r.restore_no = s.restore_no
    AND s.restore_no <> s.accepted_no AND r.step IN ('declared', 'found', 'promoted')
    AND r.identity = tl_identity()
LEFT JOIN tl_restore p ON p.restore_no = s.accepted_no AND p.step = 'proved'
LEFT JOIN tl_session x ON x.session_id = :session_id
WHERE s.one = 1

-- name: server_settings
-- The settings that decide whether a commit is taken, and survives.
SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog,
    CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF'),
    @@binlog_format, @@innodb_rollback_on_timeout
