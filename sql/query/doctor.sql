-- What `tradelock doctor` asks.

-- name: doctor_conflicts
-- Trades in conflict among those that the newest pieces of evidence are about; a conflict is always
-- set together with the evidence that made it.
SELECT COUNT(DISTINCT t.cust_no, t.serial_no, t.op_code)
FROM (SELECT cust_no, serial_no, op_code FROM trade_evidence
    ORDER BY evidence_id DESC LIMIT 10000) e
STRAIGHT_JOIN trade_lock t ON t.cust_no = e.cust_no AND t.serial_no = e.serial_no
    AND t.op_code = e.op_code
WHERE t.conflict = 1

-- name: doctor_grants
-- What the account of this connection may do, its roles included.
SHOW GRANTS

-- name: doctor_mode
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

-- name: doctor_overdue
-- How long the oldest due row of one operation within a stretch of time has waited, in
-- milliseconds; no row if nothing is due.
SELECT TIMESTAMPDIFF(MICROSECOND, next_run_at, UTC_TIMESTAMP(6)) DIV 1000
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
    + INTERVAL :from_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
    AND next_run_at <= UTC_TIMESTAMP(6) AND (lane = 'R' OR status = 'P')
ORDER BY op_code, next_run_at
LIMIT 1

-- name: doctor_parts
-- Which schema objects there are (triggers, functions, procedures, views), one a line.
SELECT tl_parts()

-- name: doctor_parts_made
-- What the triggers, functions and procedures are made of: "kind name HASH", one a line.
SELECT tl_parts_made()

-- name: doctor_passes_over
-- By what this server leaves out some of what its primary commits; NULL: it is not known to.
SELECT tl_passes_over()

-- name: doctor_reach
-- Who has rights in this database and in another one of tradelock, each role's own and those of roles
-- that it was given; whoever made roles has them with the admin option.  A role has no host.  Only an
-- account that may read mysql.* is answered.
WITH RECURSIVE given (host, user, role) AS (
    SELECT Host, User, Role FROM mysql.roles_mapping WHERE Admin_option = 'N' OR Host = ''
    UNION
    SELECT g.host, g.user, m.Role FROM given g
    JOIN mysql.roles_mapping m ON m.Host = '' AND m.User = g.role),
rights (host, user, db) AS (
    SELECT Host, User, Db FROM mysql.db
    UNION SELECT Host, User, Db FROM mysql.tables_priv
    UNION SELECT Host, User, Db FROM mysql.columns_priv
    UNION SELECT Host, User, Db FROM mysql.procs_priv),
reach (host, user, db) AS (
    SELECT host, user, db FROM rights
    UNION SELECT g.host, g.user, r.db FROM given g
    JOIN rights r ON r.host = '' AND r.user = g.role)
SELECT DISTINCT IF(a.host = '', a.user, CONCAT(a.user, '@', a.host)), a.host = '', t.table_schema
FROM reach a
JOIN reach b ON b.host = a.host AND b.user = a.user
JOIN information_schema.tables t ON t.table_name = 'tl_schema' AND t.table_schema LIKE b.db
WHERE DATABASE() LIKE a.db AND t.table_schema <> DATABASE()
ORDER BY 2 DESC, 1, 3
LIMIT 20

-- name: doctor_reach_own
-- Which other databases of tradelock this account has rights in, by its role or its own.
SELECT COALESCE(CURRENT_ROLE(), CURRENT_USER()), CURRENT_ROLE() IS NOT NULL, t.table_schema
FROM information_schema.tables t
WHERE t.table_name = 'tl_schema' AND t.table_schema <> DATABASE()
ORDER BY 3
LIMIT 20

-- name: doctor_server
-- Version, clock, and how this connection came.  NOW is the start of the statement, SYSDATE the
-- moment itself, unless the server was told to make them the same.  In that case history would
-- carry the time at which a statement began to wait.  VERSION() ends with "-log" where a log is on,
-- which tells servers of one version apart.
SELECT TRIM(TRAILING '-log' FROM VERSION()) AS version,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now_us,
    SLEEP(0.002) + TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) AS moved_us,
    p.host AS peer, s.variable_value AS cipher,
    CURRENT_USER() AS account, CURRENT_ROLE() AS role, DATABASE() AS name
FROM information_schema.processlist p
JOIN information_schema.session_status s ON s.variable_name = 'SSL_CIPHER'
WHERE p.id = CONNECTION_ID()

-- name: doctor_sessions
-- Sessions that are silent for longer than their time-out and that nobody has ended.
SELECT COUNT(*), MAX(TIMESTAMPDIFF(SECOND, alive_until, UTC_TIMESTAMP(6)))
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NULL AND alive_until < UTC_TIMESTAMP(6)

-- name: doctor_temporary
-- Who may make temporary tables in this database, but for those who may drop ours: this account and its
-- role, and all others where the account may read mysql.*.
SELECT p.grantee FROM information_schema.schema_privileges p
WHERE p.privilege_type = 'CREATE TEMPORARY TABLES' AND DATABASE() LIKE p.table_schema
    AND NOT EXISTS (SELECT 1 FROM information_schema.schema_privileges d
        WHERE d.grantee = p.grantee AND d.table_schema = p.table_schema
            AND d.privilege_type = 'DROP')
UNION
SELECT p.grantee FROM information_schema.user_privileges p
WHERE p.privilege_type = 'CREATE TEMPORARY TABLES'
    AND NOT EXISTS (SELECT 1 FROM information_schema.user_privileges d
        WHERE d.grantee = p.grantee AND d.privilege_type = 'DROP')
LIMIT 20

-- name: doctor_variables
-- What decides whether commits survive, whether history can be believed, and who may have said
-- otherwise; names that this server does not know are simply missing.
SELECT LOWER(variable_name), variable_value
FROM information_schema.global_variables
WHERE variable_name IN ('INNODB_FLUSH_LOG_AT_TRX_COMMIT', 'LOG_BIN', 'SYNC_BINLOG', 'BINLOG_FORMAT',
    'READ_ONLY', 'DEFAULT_STORAGE_ENGINE', 'INNODB_DOUBLEWRITE', 'INNODB_FORCE_RECOVERY',
    'INNODB_SNAPSHOT_ISOLATION', 'SQL_MODE', 'WAIT_TIMEOUT', 'MAX_ALLOWED_PACKET',
    'CHECK_CONSTRAINT_CHECKS', 'SECURE_TIMESTAMP', 'WSREP_ON', 'INNODB_ROLLBACK_ON_TIMEOUT',
    'RPL_SEMI_SYNC_MASTER_ENABLED', 'RPL_SEMI_SYNC_MASTER_TIMEOUT', 'RPL_SEMI_SYNC_MASTER_WAIT_POINT',
    'RPL_SEMI_SYNC_MASTER_WAIT_NO_SLAVE', 'GTID_STRICT_MODE', 'WSREP_SYNC_WAIT')

-- name: right_ask
-- Whether this account may write lock rows, as services do; no row can match.
UPDATE trade_lock SET remark = remark WHERE FALSE

-- name: right_change_evidence
-- Whether this account may change evidence; no row can match.
UPDATE trade_evidence SET remark = remark WHERE FALSE

-- name: right_decide
-- Whether this account may decide about trades; no row is made.
INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch,
    reason, actor, thread_no, log_no, although_pending, act_no, act_row)
SELECT '', '', '', 0, 'C', 1, 0, 0, '', '', NULL, NULL, 0, NULL, NULL FROM DUAL WHERE FALSE

-- name: right_delete_lock
-- Whether this account may remove locks; no row can match.
DELETE FROM trade_lock WHERE FALSE

-- name: right_delete_log
-- Whether this account may remove history; no row can match.
DELETE FROM trade_lock_past WHERE FALSE

-- name: right_forge
-- Whether this account may itself say when a row was written, and by whom; no row can match.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    fence, rev, created_at, updated_at, logged_at, account)
SELECT cust_no, serial_no, op_code, lane, status, step, thread_no, token, fence, rev,
    created_at, updated_at, logged_at, account
FROM trade_lock WHERE FALSE

-- name: right_read_channel
-- Whether this account may see which channels are paused or limited, the breakers, and who has
-- registered which; no row can match.
SELECT 1 FROM tl_session_channel, trade_channel, trade_channel_limit, trade_channel_permit, trade_channel_breaker
WHERE FALSE

-- name: right_read_log
-- Whether this account may read trades with their history, and who runs; no row can match.
SELECT l.rev FROM trade_lock_log l
JOIN trade_lock_state s ON s.serial_no = l.serial_no
JOIN trade_evidence e ON e.serial_no = l.serial_no
JOIN trade_resolution r ON r.serial_no = l.serial_no
JOIN tl_session x ON x.session_id = l.session_id
WHERE FALSE

-- name: right_read_resolution
-- Whether this account may read who decided what, as every ending of a compensating attempt does;
-- no row can match.
SELECT tl_account_name(account) FROM trade_resolution WHERE FALSE

-- name: right_write_amount
-- Whether this account may write what a request says of itself, as an ask in a group does, for which the
-- server wants the right UPDATE too; no row can match.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    fence, rev, created_at, updated_at, /*include said_columns*/)
SELECT cust_no, serial_no, op_code, lane, status, step, thread_no, token, fence, rev,
    created_at, updated_at, /*include said_columns*/
FROM trade_lock s WHERE FALSE
ON DUPLICATE KEY UPDATE trade_lock.token = trade_lock.token

-- name: right_write_first
-- Whether this account may change what a row's first step was; the server checks the right and
-- finds that no row can match.
UPDATE trade_lock SET first_token = first_token WHERE FALSE

-- name: right_write_log
-- Whether this account may change history; the server checks the right and finds that no row can
-- match.
UPDATE trade_lock_past SET remark = remark WHERE FALSE
