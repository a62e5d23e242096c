-- Which triggers, functions, procedures and views there are, one line "kind name" for each.  An
-- account sees in information_schema only what it has rights on, but the doctor of a service must
-- know of all.  Triggers are found by event_object_schema, as the server looks for them by their
-- table's schema.  With any other condition it opens every table of every database, and fails at
-- one that is just being altered.
CREATE OR REPLACE FUNCTION tl_parts()
RETURNS TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
READS SQL DATA SQL SECURITY DEFINER
RETURN CONCAT_WS('\n',
    (SELECT GROUP_CONCAT('trigger ', trigger_name SEPARATOR '\n')
        FROM information_schema.triggers WHERE event_object_schema = DATABASE()),
    (SELECT GROUP_CONCAT(LOWER(routine_type), ' ', routine_name SEPARATOR '\n')
        FROM information_schema.routines WHERE routine_schema = DATABASE()),
    (SELECT GROUP_CONCAT('view ', table_name SEPARATOR '\n')
        FROM information_schema.views WHERE table_schema = DATABASE()));

-- What they are made of: "kind name HASH" for each trigger, function and procedure, by the server's
-- text.  A view has none that could be compared: the server keeps it in words of its own.
CREATE OR REPLACE FUNCTION tl_parts_made()
RETURNS TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
READS SQL DATA SQL SECURITY DEFINER
RETURN CONCAT_WS('\n',
    (SELECT GROUP_CONCAT('trigger ', trigger_name, ' ', SHA2(CONCAT('CREATE OR REPLACE TRIGGER ',
            trigger_name, ' ', action_timing, ' ', event_manipulation, ' ON ',
            event_object_table, '\nFOR EACH ROW\n', action_statement), 256) SEPARATOR '\n')
        FROM information_schema.triggers WHERE event_object_schema = DATABASE()),
    (SELECT GROUP_CONCAT(LOWER(routine_type), ' ', routine_name, ' ',
            SHA2(CONCAT('SQL SECURITY ', security_type, '\n', routine_definition), 256)
            SEPARATOR '\n')
        FROM information_schema.routines WHERE routine_schema = DATABASE()));

-- Who holds up asks and heartbeats, the likeliest first; whoever waits sees it, also without the right
-- PROCESS.  Nobody waits all the time, so tables that are locked (by LOCK TABLES, FLUSH TABLES WITH
-- READ LOCK, a change of a table or one that waits for a transaction) are found by trying, and the
-- procedure waits for none.  The server does not say who locked them: it is a transaction that has
-- been open for long, or one of those who have the right to, of whom the last that did something is
-- the likeliest; if none is seen, the row has no connection.
--
-- Else it is who holds rows by reading (FOR UPDATE, SERIALIZABLE) or writing: a transaction of this
-- database, of a connection that has chosen none, or of an account with rights here, whatever it has
-- chosen.  One that waits itself is no cause; one that commits where commits wait for a replica comes
-- last.  Of a statement only the first word is told: the rest is of others, and may hold their data.
--
-- Columns: the connection (0: nobody is seen), whose it is, for how long in microseconds, what it
-- does, whether it commits where commits wait for a replica, and whether it is about tables.
CREATE OR REPLACE PROCEDURE tl_blockers()
READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE shut TINYINT DEFAULT 0;

    BEGIN
        DECLARE EXIT HANDLER FOR 1205 SET shut = 1;
        SET STATEMENT lock_wait_timeout = 0 FOR SELECT COUNT(*) INTO shut
        FROM trade_lock JOIN trade_lock_past JOIN trade_evidence JOIN tl_session JOIN tl_beat
        JOIN tl_receipt JOIN tl_schema JOIN tl_clock JOIN trade_channel JOIN resource_lock
        JOIN rw_lock JOIN resource_holder
        WHERE FALSE FOR UPDATE;
    END;
    (SELECT b.id, b.whose, b.age_us, b.does, b.commits, shut
    FROM (SELECT p.id, LEFT(CONCAT(p.user, '@', SUBSTRING_INDEX(p.host, ':', 1)), 80) AS whose,
            IF(t.trx_id IS NULL, CAST(p.time_ms * 1000 AS SIGNED),
                TIMESTAMPDIFF(SECOND, t.trx_started, SYSDATE()) * 1000000) AS age_us,
            IF(p.info IS NULL, 'idle', CONCAT('in ', COALESCE(NULLIF(
                REGEXP_SUBSTR(p.info, '^[A-Za-z]{1,20}'), ''), 'a statement'))) AS does,
            t.trx_id IS NOT NULL AS is_open,
            COALESCE(p.db, DATABASE()) = DATABASE() AS is_here,
            COALESCE(@@rpl_semi_sync_master_enabled = 1
                AND (p.state = 'Commit' OR p.state LIKE 'Waiting for semi-sync ACK%'), 0)
                AS commits
        FROM information_schema.processlist p
        LEFT JOIN information_schema.innodb_trx t ON t.trx_mysql_thread_id = p.id
        WHERE p.id <> CONNECTION_ID() AND p.command NOT IN ('Daemon', 'Binlog Dump')
            AND p.user <> 'system user' AND COALESCE(t.trx_state, '') <> 'LOCK WAIT'
            AND IF(shut, COALESCE(p.state, '') NOT LIKE 'Waiting for % lock'
                AND (t.trx_id IS NULL OR t.trx_started <= SYSDATE() - INTERVAL 5 SECOND),
                t.trx_rows_locked > 0)
            AND (t.trx_id IS NOT NULL AND COALESCE(p.db, DATABASE()) = DATABASE()
                OR t.trx_id IS NOT NULL AND EXISTS (SELECT 1 FROM mysql.roles_mapping m
                    WHERE m.User = p.user AND m.Admin_option = 'N'
                        AND LEFT(m.Role, CHAR_LENGTH(DATABASE()) + 1) = CONCAT(DATABASE(), '_'))
                OR EXISTS (SELECT 1 FROM information_schema.schema_privileges g
                    WHERE DATABASE() LIKE g.table_schema
                        AND (t.trx_id IS NOT NULL OR g.privilege_type = 'LOCK TABLES')
                        AND LOCATE(CONCAT(QUOTE(p.user), '@'), g.grantee) = 1)
                OR t.trx_id IS NOT NULL AND EXISTS (SELECT 1 FROM information_schema.table_privileges g
                    WHERE g.table_schema = DATABASE()
                        AND LOCATE(CONCAT(QUOTE(p.user), '@'), g.grantee) = 1)
                OR EXISTS (SELECT 1 FROM information_schema.innodb_lock_waits w
                    JOIN information_schema.innodb_locks l ON l.lock_id = w.requested_lock_id
                    WHERE w.blocking_trx_id = t.trx_id
                        AND l.lock_table LIKE CONCAT('`', DATABASE(), '`.%'))
                OR shut AND EXISTS (SELECT 1 FROM information_schema.user_privileges g
                    WHERE g.privilege_type IN ('LOCK TABLES', 'RELOAD')
                        AND LOCATE(CONCAT(QUOTE(p.user), '@'), g.grantee) = 1))) b
    ORDER BY b.commits, b.is_open DESC, b.is_here DESC,
        IF(shut AND NOT b.is_open, b.age_us, -b.age_us)
    LIMIT 3)
    UNION ALL SELECT 0, '', 0, '', 0, 1 FROM DUAL WHERE shut;
END;
