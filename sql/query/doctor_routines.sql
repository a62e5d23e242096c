-- The parts that write and read the log with their definer's rights.
SELECT 'trigger' AS kind, trigger_name AS name, definer
FROM information_schema.triggers
WHERE trigger_schema = DATABASE() AND event_object_table = 'trade_lock'
UNION ALL
SELECT 'function', routine_name, definer
FROM information_schema.routines
WHERE routine_schema = DATABASE() AND routine_name = 'tl_token_seen'
