-- The table that a declared statement changes: whether it is one, its engine, whether that commits
-- together with InnoDB, and whether the table is one of ours.
SELECT t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED'), t.engine,
    e.transactions = 'YES' AND e.xa = 'YES',
    t.table_schema = DATABASE() AND t.table_name IN ('audit_closing', 'resource_holder',
        'resource_holder_log', 'resource_lock', 'resource_log', 'row_lock', 'rw_lock', 'tl_act',
         'tl_act_row', 'tl_archive_set', 'tl_attestation', 'tl_attestation_missing', 'tl_beat',
         'tl_clock', 'tl_clock_step', 'tl_receipt', 'tl_restore', 'tl_schema', 'tl_session', 'tl_session_channel',
         'tl_slot', 'trade_channel', 'trade_channel_breaker',
         'trade_channel_limit', 'trade_channel_permit', 'trade_evidence', 'trade_lock',
         'trade_lock_low_water', 'trade_lock_past', 'trade_resolution')
FROM information_schema.tables AS t
LEFT JOIN information_schema.engines AS e ON e.engine = t.engine
WHERE t.table_schema = COALESCE(:schema_name, DATABASE()) AND t.table_name = :table_name
