-- All channels and operations that are known, or those of one channel, and what was decided about
-- each.
SELECT c.channel, c.op_code, c.paused, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', c.decided_at),
    c.reason, c.actor, c.account, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
    tl_account_name(c.account) <=> tl_account_name(CURRENT_USER()),
    l.sends, l.per_second, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.decided_at), l.reason,
    l.actor, l.account, tl_account_name(l.account) <=> tl_account_name(CURRENT_USER()),
    b.unknowns, b.share, b.window_s, b.probe_s,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', b.opened_at), b.opened,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', b.decided_at), b.reason, b.actor, b.account,
    tl_account_name(b.account) <=> tl_account_name(CURRENT_USER())
FROM trade_channel c FORCE INDEX (PRIMARY)
LEFT JOIN trade_channel_limit l FORCE INDEX (PRIMARY)
    ON l.channel = c.channel AND l.op_code = c.op_code
LEFT JOIN trade_channel_breaker b FORCE INDEX (PRIMARY)
    ON b.channel = c.channel AND b.op_code = c.op_code
WHERE c.channel >= :from_channel AND c.channel <= :to_channel
ORDER BY c.channel, c.op_code
