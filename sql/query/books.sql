-- Declared books, and transactions of a caller.

-- name: caller_transaction
-- Questions about a caller's connection: is it in a transaction, else does the next statement begin
-- one, does the server end a silent one, and which server is it, as tl_identity() says?  Reading variables begins no transaction.
SELECT @@in_transaction AS in_transaction, @@autocommit AS autocommit,
    @@idle_transaction_timeout AS idle_transaction_s,
    CONCAT_WS(' ', @@hostname, @@server_id, @@datadir) AS identity

-- name: declared_table
-- The table that a declared statement changes: whether it is one, its engine, whether that commits
-- together with InnoDB, and whether the table is one of ours.
SELECT t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED'), t.engine,
    e.transactions = 'YES' AND e.xa = 'YES',
    t.table_schema = DATABASE() AND t.table_name IN ('audit_closing', 'resource_holder',
        'resource_holder_log', 'resource_lock', 'resource_log', 'row_lock', 'rw_lock', 'tl_act',
         'tl_act_row', 'tl_archive_set', 'tl_attestation', 'tl_attestation_missing', 'tl_beat',
         'tl_blanking', 'tl_clock', 'tl_clock_step', 'tl_receipt', 'tl_restore', 'tl_schema', 'tl_session', 'tl_session_channel',
         'tl_slot', 'trade_channel', 'trade_channel_breaker',
         'trade_channel_limit', 'trade_channel_permit', 'trade_evidence', 'trade_lock',
         'trade_lock_low_water', 'trade_lock_past', 'trade_resolution')
FROM information_schema.tables AS t
LEFT JOIN information_schema.engines AS e ON e.engine = t.engine
WHERE t.table_schema = COALESCE(:schema_name, DATABASE()) AND t.table_name = :table_name

-- name: declared_types
-- The columns of a declared statement's table, as far as the account may see them, in the order in
-- which an INSERT without a list of columns meets them; whether a row must be given a value there, and
-- whether the server itself changes it with the row's other columns.
SELECT column_name, data_type, extra LIKE '%INVISIBLE%',
    is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%auto_increment%'
        AND extra NOT LIKE '%GENERATED%' AND is_generated = 'NEVER',
    is_generated <> 'NEVER' OR extra LIKE '%GENERATED%' OR extra LIKE '%on update%'
FROM information_schema.columns
WHERE table_schema = COALESCE(:schema_name, DATABASE()) AND table_name = :table_name
ORDER BY ordinal_position

-- name: named_columns
-- The columns of the trades that tl_purge_named named (object/purge), for JSON_TABLE.
cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$[0]',
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$[1]',
    op_code VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$[2]'
