-- What accepting would put in doubt: trades in process by operation and state, and their amounts by
-- currency ('': none was said; a sum is DECIMAL, which does not overflow).  And which other locks
-- it would take away.  It walks the tables, for an operator who is about to decide.
SELECT op_code, state, COUNT(*), NULL AS currency, NULL AS sum_minor FROM trade_lock_state
WHERE lane = 'S' AND status = 'P' AND repeatable = 0
GROUP BY op_code, state
UNION ALL
SELECT '', '', COUNT(*), COALESCE(currency, ''), CAST(SUM(amount_minor) AS CHAR) FROM trade_lock
WHERE lane = 'S' AND status = 'P' AND repeatable = 0
GROUP BY currency
UNION ALL
SELECT '', 'mutexes', COUNT(*), NULL, NULL FROM resource_lock WHERE status = 'L'
UNION ALL
SELECT '', 'readers and writers', COUNT(*), NULL, NULL FROM resource_holder WHERE status <> 'F'
ORDER BY 1, 2, 4
