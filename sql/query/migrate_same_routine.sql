-- Whether two functions or procedures are the same to the server, except for the definer.
SELECT COUNT(*) = 2 AND COUNT(DISTINCT SHA2(CONCAT_WS('\n', r.routine_type, r.dtd_identifier,
    r.character_set_name, r.collation_name, r.sql_data_access, r.security_type,
    r.is_deterministic, p.list, r.routine_definition), 256)) = 1
FROM information_schema.routines r
LEFT JOIN (SELECT specific_name,
        GROUP_CONCAT(CONCAT_WS(' ', parameter_mode, parameter_name, dtd_identifier,
            character_set_name, collation_name)
        ORDER BY ordinal_position SEPARATOR '\n') AS list
    FROM information_schema.parameters
    WHERE specific_schema = DATABASE() AND specific_name IN (:name, :other)
    GROUP BY specific_name) p ON p.specific_name = r.routine_name
WHERE r.routine_schema = DATABASE() AND r.routine_name IN (:name, :other)
