-- For which channels and operations sends are paused, why and by whom.  A channel that is paused as
-- a whole is told with '' and with each of its operations that is known.
SELECT k.channel, k.op_code, p.reason, p.account,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', p.decided_at),
    TIMESTAMPDIFF(MICROSECOND, p.decided_at, UTC_TIMESTAMP(6))
FROM trade_channel p FORCE INDEX (paused)
STRAIGHT_JOIN trade_channel k FORCE INDEX (PRIMARY)
    ON k.channel = p.channel AND (p.op_code = '' OR k.op_code = p.op_code)
WHERE p.paused = 1
