-- The columns of a declared statement's table, as far as the account may see them, in the order in
-- which an INSERT without a list of columns meets them.
SELECT column_name, data_type, extra LIKE '%INVISIBLE%'
FROM information_schema.columns
WHERE table_schema = COALESCE(:schema_name, DATABASE()) AND table_name = :table_name
ORDER BY ordinal_position
