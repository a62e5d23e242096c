-- How many commits have waited for a replica for so long; of this account alone, unless it may see
-- the processes of others.  Of what is replicated here the time is its lag.
SELECT COUNT(*) FROM information_schema.processlist
WHERE @@rpl_semi_sync_master_enabled = 1 AND time_ms >= :waited_ms
    AND user <> 'system user' AND (state = 'Commit' OR state LIKE 'Waiting for semi-sync ACK%')
