-- What operators proposed and confirmed about a trade, and what was not carried out, oldest first;
-- of each whether the account that asks now wrote it, and whether it waits for a second operator.
SELECT d.rev, d.fence, d.epoch, d.verdict, d.part, d.reason, d.actor, d.account,
    tl_account_name(d.account) <=> tl_account_name(CURRENT_USER()),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', d.decided_at), d.although_pending, t.rev IS NOT NULL
FROM trade_resolution d
LEFT JOIN trade_lock t ON /*include proposal_stands_condition*/
WHERE d.cust_no = :cust_no AND d.serial_no = :serial_no AND d.op_code = :op_code
ORDER BY d.cust_no, d.serial_no, d.op_code, d.rev, d.verdict, d.part
