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
