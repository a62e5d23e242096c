-- Which channels and operations have a breaker, and how it stands; op_code '' is one of all
-- operations together.  Last, in how many milliseconds a probe may begin; negative: it might have
-- for so long.  A moment that is further away than anybody sets was set by another clock, and counts
-- as one of the past: whoever then tries has it set right (sql/object/channel.sql).
SELECT channel, op_code, unknowns, share, probe_s, era, opened_at IS NOT NULL, in_a_row,
    COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), next_at)
        * IF(next_at > UTC_TIMESTAMP(6)
            + INTERVAL GREATEST(probe_s * 1000, hold_ms) * 1000 MICROSECOND, -1, 1), 0) DIV 1000
FROM trade_channel_breaker FORCE INDEX (PRIMARY)
WHERE unknowns IS NOT NULL
ORDER BY channel, op_code
