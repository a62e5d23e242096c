-- What one operator proposed and nobody confirmed: decisions about trades that are still as their
-- operator saw them, and findings of an audit; oldest first.  It walks through what operators ever
-- decided.
SELECT 'resolve' AS what, d.serial_no, d.cust_no, d.op_code, d.fence,
    CASE d.verdict WHEN 'C' THEN 'clear' WHEN 'Y' THEN 'paid' ELSE 'failed' END AS said,
    d.reason, d.actor, d.account,
    tl_account_name(d.account) <=> tl_account_name(CURRENT_USER()) AS own,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', d.decided_at) AS at_us
FROM trade_resolution d
STRAIGHT_JOIN trade_lock t ON /*include proposal_stands_condition*/
UNION ALL
SELECT 'audit', d.serial_no, d.cust_no, d.op_code, 0, LOWER(LEFT(HEX(d.finding), 16)), d.reason,
    d.actor, d.account, tl_account_name(d.account) <=> tl_account_name(CURRENT_USER()),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', d.closed_at)
FROM audit_closing d
LEFT JOIN audit_closing c ON c.finding = d.finding AND c.part = 2
WHERE d.part = 1 AND c.part IS NULL
ORDER BY at_us LIMIT 1000
