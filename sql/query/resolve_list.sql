-- What operators proposed and confirmed about a trade, and what was not carried out, oldest first;
-- and of each whether the account that asks now wrote it.
SELECT rev, fence, epoch, verdict, part, reason, actor, account,
    tl_account_name(account) <=> tl_account_name(CURRENT_USER()),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', decided_at) AS decided_us, although_pending
FROM trade_resolution
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code
ORDER BY cust_no, serial_no, op_code, rev, verdict, part
