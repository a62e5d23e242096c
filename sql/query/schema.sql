-- The schema: migrations, its version, its site.

-- name: migrate_done
-- All migrations up to this one are applied, and all schema objects are made.  The retention rises to
-- the setting; only an administrator lowers it, by an UPDATE.
UPDATE tl_schema SET version = GREATEST(version, :version),
    retention_ms = GREATEST(retention_ms, :retention_ms),
    payload_keep_ms = NULLIF(:payload_keep_ms, 0) WHERE one = 1

-- name: migrate_objects
-- As doctor_parts, for an administrator who mends schema objects: tl_parts() itself may be
-- missing.  What runs as an account that is gone is as good as missing, and so is what runs as one
-- that this administrator may not see.  The rule of slots is never replaced.
SELECT CONCAT(o.kind, ' ', o.name)
FROM (SELECT 'trigger' AS kind, trigger_name AS name, definer
    FROM information_schema.triggers
    WHERE event_object_schema = DATABASE()
    UNION ALL
    SELECT LOWER(routine_type), routine_name,
        IF(security_type = 'DEFINER' AND routine_name <> 'tl_customer_slot', definer, NULL)
    FROM information_schema.routines
    WHERE routine_schema = DATABASE()
    UNION ALL
    SELECT 'view', table_name, IF(security_type = 'DEFINER', definer, NULL)
    FROM information_schema.views
    WHERE table_schema = DATABASE()) o
WHERE o.definer IS NULL OR EXISTS (SELECT 1 FROM information_schema.user_privileges u
    WHERE REPLACE(u.grantee, '\'', '') = o.definer)

-- name: migrate_same_routine
-- Whether two functions or procedures are the same to the server, except for the definer.  Parameters
-- are joined one by one: joined as a sum, the server parses the routines of all its databases.
SELECT COUNT(*) = 2 AND COUNT(DISTINCT r.sum) = 1
FROM (SELECT SHA2(CONCAT_WS('\n', r.routine_type, r.dtd_identifier, r.character_set_name,
        r.collation_name, r.sql_data_access, r.security_type, r.is_deterministic,
        GROUP_CONCAT(CONCAT_WS(' ', p.parameter_mode, p.parameter_name, p.dtd_identifier,
            p.character_set_name, p.collation_name)
        ORDER BY p.ordinal_position SEPARATOR '\n'), r.routine_definition), 256) AS sum
    FROM information_schema.routines r
    LEFT JOIN information_schema.parameters p
        ON p.specific_schema = DATABASE() AND p.specific_name = r.routine_name
    WHERE r.routine_schema = DATABASE() AND r.routine_name IN (:name, :other)
    GROUP BY r.routine_name) r

-- name: migrate_same_trigger
-- Whether a trigger is the one that this library makes.  The server keeps a trigger's text as it
-- came, except for the character set of literals.  The definer is not compared.
SELECT COUNT(*) FROM information_schema.triggers t
WHERE t.event_object_schema = DATABASE() AND t.trigger_name = :name
    AND BINARY CONCAT('CREATE OR REPLACE TRIGGER ', t.trigger_name, ' ', t.action_timing, ' ',
        t.event_manipulation, ' ON ', t.event_object_table, '\nFOR EACH ROW\n',
        t.action_statement) = BINARY REPLACE(:definition, '_ascii ', ' ')

-- name: migrate_same_view
-- Whether two views are the same to the server, except for the definer.
SELECT COUNT(*) = 2 AND COUNT(DISTINCT SHA2(CONCAT_WS('\n', v.security_type, v.view_definition),
    256)) = 1
FROM information_schema.views v
WHERE v.table_schema = DATABASE() AND v.table_name IN (:name, :other)

-- name: migrate_turn
-- Lets one process at a time migrate a database; the lock ends with its connection.  A server that
-- takes no such long statement may close the connection before it has said so, so that is asked here.
SELECT GET_LOCK(CONCAT('tl:migrate:', MD5(DATABASE())), :wait_s), @@max_allowed_packet >= 65536

-- name: migrate_wait
-- How long a migration waits, in seconds, while others use a table.
SET SESSION lock_wait_timeout = :wait_s

-- name: schema_identity
-- Writes, once, on which server the schema was made.  tl_identity() tells the same, but somebody
-- may have dropped it.
UPDATE tl_schema
SET identity = CONCAT_WS(' ', @@hostname, @@server_id, @@datadir)
WHERE one = 1 AND identity IS NULL

-- name: schema_version
-- Which schema this is, and the oldest client that it serves.
SELECT version, oldest_client FROM tl_schema WHERE one = 1

-- name: site
-- The site of all channel keys; '': no session has begun yet.
SELECT COALESCE(site, '') FROM tl_schema WHERE one = 1

-- name: site_is
-- A session says its site; the procedure commits by itself (sql/object/contract.sql).  It waits for
-- others that begin: services start together.
SET STATEMENT innodb_lock_wait_timeout = 5 FOR
CALL tl_site_is(:site, @tl_called)
