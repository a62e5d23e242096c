-- The limits, and how much of each is used: how many permits processes have, and how many they could use when
-- they last asked; those among them of processes that ended, and when the first of these is free,
-- in microseconds; for how long a send of any is at most under way; and when the next send of a
-- limit a second may begin.  It counts the permits that tl_channel_share() counts, and as there a
-- next moment that is further away than anybody gives away was told by another clock.
SELECT l.channel, l.op_code, l.sends, l.per_second, COALESCE(SUM(p.permits), 0),
    COALESCE(SUM(IF(s.ended_at IS NULL, p.wanted, 0)), 0),
    COALESCE(SUM(IF(s.ended_at IS NULL, 0, p.permits)), 0),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MIN(IF(p.permits > 0,
        s.ended_at + INTERVAL p.hold_ms * 1000 MICROSECOND, NULL))),
    COALESCE(MAX(p.hold_ms), 0),
    IF(l.per_second IS NOT NULL AND l.next_at BETWEEN UTC_TIMESTAMP(6)
            AND UTC_TIMESTAMP(6) + INTERVAL 2 SECOND,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.next_at), NULL)
FROM trade_channel_limit l FORCE INDEX (PRIMARY)
LEFT JOIN (trade_channel_permit p FORCE INDEX (PRIMARY)
    STRAIGHT_JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = p.session_id
        AND (s.ended_at IS NULL
            OR s.ended_at + INTERVAL p.hold_ms * 1000 MICROSECOND >= UTC_TIMESTAMP(6)))
    ON p.channel = l.channel AND p.op_code = l.op_code AND l.sends IS NOT NULL
WHERE l.sends IS NOT NULL OR l.per_second IS NOT NULL
GROUP BY l.channel, l.op_code
ORDER BY l.channel, l.op_code
