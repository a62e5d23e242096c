-- What decides whether commits survive, whether history can be believed, and who may have said
-- otherwise; names that this server does not know are simply missing.
SELECT LOWER(variable_name), variable_value
FROM information_schema.global_variables
WHERE variable_name IN ('INNODB_FLUSH_LOG_AT_TRX_COMMIT', 'LOG_BIN', 'SYNC_BINLOG', 'BINLOG_FORMAT',
    'READ_ONLY', 'DEFAULT_STORAGE_ENGINE', 'INNODB_DOUBLEWRITE', 'INNODB_FORCE_RECOVERY',
    'INNODB_SNAPSHOT_ISOLATION', 'SQL_MODE', 'WAIT_TIMEOUT', 'MAX_ALLOWED_PACKET',
    'CHECK_CONSTRAINT_CHECKS', 'SECURE_TIMESTAMP', 'WSREP_ON', 'RPL_SEMI_SYNC_MASTER_ENABLED',
    'RPL_SEMI_SYNC_MASTER_TIMEOUT', 'RPL_SEMI_SYNC_MASTER_WAIT_POINT',
    'RPL_SEMI_SYNC_MASTER_WAIT_NO_SLAVE', 'GTID_STRICT_MODE', 'WSREP_SYNC_WAIT')
