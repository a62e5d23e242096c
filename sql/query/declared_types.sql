-- The columns of a declared statement's table, as far as the account may see them, in the order in
-- which an INSERT without a list of columns meets them; whether a row must be given a value there, and
-- whether the server itself changes it with the row's other columns.
SELECT column_name, data_type, extra LIKE '%INVISIBLE%',
    is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%auto_increment%'
        AND extra NOT LIKE '%GENERATED%' AND is_generated = 'NEVER',
    is_generated <> 'NEVER' OR extra LIKE '%GENERATED%' OR extra LIKE '%on update%'
FROM information_schema.columns
WHERE table_schema = COALESCE(:schema_name, DATABASE()) AND table_name = :table_name
ORDER BY ordinal_position
