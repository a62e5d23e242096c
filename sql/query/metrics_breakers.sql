-- How the breakers of channels stand, for each operation of theirs that is known: for how long it has
-- been open, and how often it has opened.  A breaker of all operations is told with '' too.
SELECT k.channel, k.op_code,
    COALESCE(TIMESTAMPDIFF(MICROSECOND, MIN(b.opened_at), UTC_TIMESTAMP(6)), 0), SUM(b.opened)
FROM trade_channel_breaker b FORCE INDEX (PRIMARY)
STRAIGHT_JOIN trade_channel k FORCE INDEX (PRIMARY)
    ON k.channel = b.channel AND (b.op_code = '' OR k.op_code = b.op_code)
WHERE b.unknowns IS NOT NULL
GROUP BY k.channel, k.op_code
