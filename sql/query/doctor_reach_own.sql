-- Which other databases of tradelock this account has rights in, by its role or its own.
SELECT COALESCE(CURRENT_ROLE(), CURRENT_USER()), CURRENT_ROLE() IS NOT NULL, t.table_schema
FROM information_schema.tables t
WHERE t.table_name = 'tl_schema' AND t.table_schema <> DATABASE()
ORDER BY 3
LIMIT 20
