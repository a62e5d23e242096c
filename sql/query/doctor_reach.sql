-- Who has rights in this database and in another one of tradelock, each role's own and those of roles
-- that it was given; whoever made roles has them with the admin option.  A role has no host.  Only an
-- account that may read mysql.* is answered.
WITH RECURSIVE given (host, user, role) AS (
    SELECT Host, User, Role FROM mysql.roles_mapping WHERE Admin_option = 'N' OR Host = ''
    UNION
    SELECT g.host, g.user, m.Role FROM given g
    JOIN mysql.roles_mapping m ON m.Host = '' AND m.User = g.role),
rights (host, user, db) AS (
    SELECT Host, User, Db FROM mysql.db
    UNION SELECT Host, User, Db FROM mysql.tables_priv
    UNION SELECT Host, User, Db FROM mysql.columns_priv
    UNION SELECT Host, User, Db FROM mysql.procs_priv),
reach (host, user, db) AS (
    SELECT host, user, db FROM rights
    UNION SELECT g.host, g.user, r.db FROM given g
    JOIN rights r ON r.host = '' AND r.user = g.role)
SELECT DISTINCT IF(a.host = '', a.user, CONCAT(a.user, '@', a.host)), a.host = '', t.table_schema
FROM reach a
JOIN reach b ON b.host = a.host AND b.user = a.user
JOIN information_schema.tables t ON t.table_name = 'tl_schema' AND t.table_schema LIKE b.db
WHERE DATABASE() LIKE a.db AND t.table_schema <> DATABASE()
ORDER BY 2 DESC, 1, 3
LIMIT 20
