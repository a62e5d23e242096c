-- The settings that decide whether a commit is taken, and survives.
SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog,
    CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF'),
    @@binlog_format
