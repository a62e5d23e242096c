-- Whether two functions or procedures are the same to the server, except for the definer.
SELECT COUNT(*) = 2 AND COUNT(DISTINCT SHA2(CONCAT_WS('\n', r.routine_type, r.dtd_identifier,
    r.character_set_name, r.collation_name, r.sql_data_access, r.security_type,
    r.is_deterministic,
    (SELECT GROUP_CONCAT(CONCAT_WS(' ', p.parameter_mode, p.parameter_name, p.dtd_identifier,
            p.character_set_name, p.collation_name)
        ORDER BY p.ordinal_position SEPARATOR '\n')
    FROM information_schema.parameters p
    WHERE p.specific_schema = DATABASE() AND p.specific_name = r.routine_name),
    r.routine_definition), 256)) = 1
FROM information_schema.routines r
WHERE r.routine_schema = DATABASE() AND r.routine_name IN (:name, :other)
