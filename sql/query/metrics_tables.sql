-- About how large the tables are that grow with every trade: rows and bytes, from the server's
-- statistics.  No row is read.
SELECT table_name, COALESCE(table_rows, 0), COALESCE(data_length + index_length, 0)
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name IN ('trade_lock', 'trade_lock_past',
    'trade_evidence', 'resource_log', 'resource_holder_log')
