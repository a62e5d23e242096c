-- What accepting would put in doubt: trades in process, by operation and state; and what it would
-- take away.  Walks the tables, for an operator who is about to decide.
SELECT op_code, state, COUNT(*) FROM trade_lock_state
WHERE lane = 'S' AND status = 'P' AND repeatable = 0
GROUP BY op_code, state
UNION ALL
SELECT '', 'mutexes', COUNT(*) FROM resource_lock WHERE status = 'L'
UNION ALL
SELECT '', 'readers and writers', COUNT(*) FROM resource_holder WHERE status <> 'F'
ORDER BY 1, 2
