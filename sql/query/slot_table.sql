-- The statements by which the rows of customers go from one database to the other, of any table with
-- a column cust_no: to read rows as literals, to insert, to remove and to count them, and to find
-- customers.
-- All columns as they are, but generated ones, and the number of a piece of evidence.  Bytes go as
-- hexadecimal digits, floating point numbers with all of theirs.
SELECT t.engine,
    CONCAT('SELECT CONCAT_WS('', '', ', GROUP_CONCAT(CASE
        WHEN c.data_type LIKE '%blob' OR c.data_type LIKE '%binary' OR c.character_set_name IS NULL
            AND c.data_type IN ('geometry', 'point', 'linestring', 'polygon', 'multipoint',
                'multilinestring', 'multipolygon', 'geometrycollection')
            THEN CONCAT('IF(`', c.column_name, '` IS NULL, ''NULL'', CONCAT(''X'''''', HEX(`',
                c.column_name, '`), ''''''''))')
        WHEN c.data_type = 'bit'
            THEN CONCAT('COALESCE(CAST(`', c.column_name, '` AS UNSIGNED), ''NULL'')')
        WHEN c.data_type IN ('float', 'double')
            THEN CONCAT('QUOTE(CAST(`', c.column_name, '` AS DOUBLE))')
        ELSE CONCAT('CONVERT(QUOTE(`', c.column_name, '`) USING utf8mb4)') END
        ORDER BY c.ordinal_position SEPARATOR ', '), ') FROM `', t.table_name,
        '` WHERE cust_no IN ('),
    CONCAT('INSERT INTO `', t.table_name, '` (', GROUP_CONCAT('`', c.column_name, '`'
        ORDER BY c.ordinal_position SEPARATOR ', '), ') VALUES '),
    CONCAT('DELETE FROM `', t.table_name, '` WHERE cust_no IN ('),
    CONCAT('SELECT c.cust_no, QUOTE(c.cust_no), JSON_QUOTE(CONVERT(c.cust_no USING utf8mb4)) FROM '
        '(SELECT DISTINCT CONVERT(cust_no USING ascii) COLLATE ascii_nopad_bin AS cust_no FROM `',
        t.table_name, '`) c WHERE tl_customer_slot(c.cust_no) = '),
    SUM(c.column_name = 'cust_no'),
    CONCAT('SELECT COUNT(*) FROM `', t.table_name, '` WHERE cust_no IN (')
FROM information_schema.tables t
JOIN information_schema.columns c ON c.table_schema = t.table_schema
    AND c.table_name = t.table_name
WHERE t.table_schema = DATABASE() AND t.table_name = :table_name
    AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND c.is_generated = 'NEVER'
    AND c.extra NOT LIKE '%GENERATED%'
    AND NOT (t.table_name = 'trade_evidence' AND c.column_name = 'evidence_id')
GROUP BY t.table_name
