-- Whether two views are the same to the server, except for the definer.
SELECT COUNT(*) = 2 AND COUNT(DISTINCT SHA2(CONCAT_WS('\n', v.security_type, v.view_definition),
    256)) = 1
FROM information_schema.views v
WHERE v.table_schema = DATABASE() AND v.table_name IN (:name, :other)
