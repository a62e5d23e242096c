-- Which channels and operations have a breaker, and how it stands; op_code '' is one of all
-- operations together.  Last, in how many milliseconds a probe may begin; negative: it might have
-- for so long.
SELECT channel, op_code, unknowns, share, probe_s, era, opened_at IS NOT NULL, in_a_row,
    COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), next_at), 0) DIV 1000
FROM trade_channel_breaker FORCE INDEX (PRIMARY)
WHERE unknowns IS NOT NULL
ORDER BY channel, op_code
