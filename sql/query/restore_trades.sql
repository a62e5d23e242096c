-- What accepting would put in doubt: trades in process by operation and state, and their amounts by
-- currency ('': none was said; a sum is DECIMAL, which does not overflow).  Which other locks it
-- would take away.  And which payments were filed while the restore is open, by account and currency.
-- It walks the tables, for an operator who is about to decide.
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
UNION ALL
SELECT '', e.account, COUNT(*), COALESCE(e.currency, ''), CAST(SUM(e.amount_minor) AS CHAR)
FROM tl_schema s
JOIN tl_restore o ON o.restore_no = s.accepted_no + 1
    AND o.step IN ('declared', 'found', 'promoted')
JOIN trade_evidence e ON e.filed_at >= o.decided_at AND e.outcome = 'SUCCEEDED'
WHERE s.one = 1
GROUP BY e.account, e.currency
ORDER BY 1, 2, 4
