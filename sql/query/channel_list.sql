-- All channels and operations that are known, or those of one channel, and what was decided about
-- each.  Last, of a breaker that is open: how many probes had no answer, when the last one began,
-- whether that goes on, and when the next one may begin.  A moment that is further away than
-- anybody sets was set by another clock, as channel_breakers.sql says.
SELECT c.channel, c.op_code, c.paused, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', c.decided_at),
    c.reason, c.actor, c.account, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
    tl_account_name(c.account) <=> tl_account_name(CURRENT_USER()),
    l.sends, l.per_second, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.decided_at), l.reason,
    l.actor, l.account, tl_account_name(l.account) <=> tl_account_name(CURRENT_USER()),
    b.unknowns, b.share, b.window_s, b.probe_s,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', b.opened_at), b.opened,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', b.decided_at), b.reason, b.actor, b.account,
    tl_account_name(b.account) <=> tl_account_name(CURRENT_USER()),
    IF(b.opened_at IS NULL, 0, b.in_a_row),
    IF(b.window_at >= b.opened_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', b.window_at), NULL),
    COALESCE(b.window_at >= b.opened_at AND b.window_sends > 0 AND b.next_at > UTC_TIMESTAMP(6), 0),
    IF(b.opened_at IS NULL OR b.next_at > UTC_TIMESTAMP(6)
            + INTERVAL GREATEST(b.probe_s * 1000, b.hold_ms) * 1000 MICROSECOND,
        NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', b.next_at))
FROM trade_channel c FORCE INDEX (PRIMARY)
LEFT JOIN trade_channel_limit l FORCE INDEX (PRIMARY)
    ON l.channel = c.channel AND l.op_code = c.op_code
LEFT JOIN trade_channel_breaker b FORCE INDEX (PRIMARY)
    ON b.channel = c.channel AND b.op_code = c.op_code
WHERE c.channel >= :from_channel AND c.channel <= :to_channel
ORDER BY c.channel, c.op_code
