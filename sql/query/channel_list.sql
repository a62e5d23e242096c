-- All channels and operations that are known, or those of one channel, and what was decided about
-- each.
SELECT channel, op_code, paused, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', decided_at), reason,
    actor, account, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
    tl_account_name(account) <=> tl_account_name(CURRENT_USER())
FROM trade_channel FORCE INDEX (PRIMARY)
WHERE channel >= :from_channel AND channel <= :to_channel
ORDER BY channel, op_code
