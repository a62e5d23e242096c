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

-- The oldest open transaction that holds row locks, of this database, of a connection that has chosen
-- none, or of an account that was given a role here, whatever it has chosen: who holds others up by
-- reading (FOR UPDATE, SERIALIZABLE) is seen by whoever waits, who may not have the right PROCESS.
-- NULL: there is none.  A JSON array: its connection, whose it is, for how long in microseconds, and
-- whether it commits where commits wait for a replica.
CREATE OR REPLACE FUNCTION tl_oldest_transaction()
RETURNS TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
READS SQL DATA SQL SECURITY DEFINER
RETURN (SELECT JSON_ARRAY(t.trx_mysql_thread_id, p.user, SUBSTRING_INDEX(p.host, ':', 1),
        TIMESTAMPDIFF(SECOND, t.trx_started, NOW()) * 1000000,
        COALESCE(@@rpl_semi_sync_master_enabled = 1
            AND (p.state = 'Commit' OR p.state LIKE 'Waiting for semi-sync ACK%'), 0))
    FROM information_schema.innodb_trx t
    JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
    WHERE t.trx_rows_locked > 0 AND (COALESCE(p.db, DATABASE()) = DATABASE()
            OR EXISTS (SELECT 1 FROM mysql.roles_mapping m WHERE m.User = p.user
                AND m.Admin_option = 'N'
                AND LEFT(m.Role, CHAR_LENGTH(DATABASE()) + 1) = CONCAT(DATABASE(), '_')))
        AND t.trx_mysql_thread_id <> CONNECTION_ID()
    ORDER BY t.trx_started LIMIT 1);
