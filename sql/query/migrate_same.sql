-- Whether a schema object is the one that this library makes.  The server keeps a trigger's words
-- as they came, but for the character set of literals, so these are compared.  Of all others the
-- same definition was made beside it, under the name `compared`, and what the server says of both
-- is compared.  Who the definer is does not matter.
SELECT EXISTS (SELECT 1 FROM information_schema.triggers t
        WHERE t.event_object_schema = DATABASE() AND t.trigger_name = n.object
            AND BINARY CONCAT('CREATE OR REPLACE TRIGGER ', t.trigger_name, ' ', t.action_timing,
                ' ', t.event_manipulation, ' ON ', t.event_object_table, '\nFOR EACH ROW\n',
                t.action_statement) = BINARY REPLACE(n.definition, '_ascii ', ' '))
    OR EXISTS (SELECT 1 FROM information_schema.routines a
        JOIN information_schema.routines b ON b.routine_schema = a.routine_schema
            AND b.routine_type = a.routine_type AND b.routine_name = n.compared
        WHERE a.routine_schema = DATABASE() AND a.routine_name = n.object
            AND BINARY a.routine_definition = BINARY b.routine_definition
            AND a.dtd_identifier <=> b.dtd_identifier
            AND a.character_set_name <=> b.character_set_name
            AND a.collation_name <=> b.collation_name
            AND a.sql_data_access = b.sql_data_access AND a.security_type = b.security_type
            AND a.is_deterministic = b.is_deterministic
            AND (SELECT GROUP_CONCAT(CONCAT_WS(' ', p.parameter_mode, p.parameter_name,
                        p.dtd_identifier, p.character_set_name, p.collation_name)
                    ORDER BY p.ordinal_position)
                FROM information_schema.parameters p
                WHERE p.specific_schema = a.routine_schema AND p.specific_name = a.routine_name)
            <=> (SELECT GROUP_CONCAT(CONCAT_WS(' ', p.parameter_mode, p.parameter_name,
                        p.dtd_identifier, p.character_set_name, p.collation_name)
                    ORDER BY p.ordinal_position)
                FROM information_schema.parameters p
                WHERE p.specific_schema = b.routine_schema AND p.specific_name = b.routine_name))
    OR EXISTS (SELECT 1 FROM information_schema.views a
        JOIN information_schema.views b ON b.table_schema = a.table_schema
            AND b.table_name = n.compared
        WHERE a.table_schema = DATABASE() AND a.table_name = n.object
            AND BINARY a.view_definition = BINARY b.view_definition
            AND a.security_type = b.security_type)
FROM (SELECT ? AS object, ? AS definition, ? AS compared) n
