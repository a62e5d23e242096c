-- The same for a process that begins and has nothing to compare it with: how far the last beat
-- or the end of another, or a low-water mark, lies in the future, which only a clock that was
-- set back explains; and whether another is silent, or the clock was set forward just now.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), c.steps,
    c.steps - c.settled,
    GREATEST(0, COALESCE((SELECT MAX(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), x.alive_until)
            - CAST(x.timeout_ms AS SIGNED) * 1000)
        FROM tl_session x FORCE INDEX (to_sweep)
        WHERE x.swept_at IS NULL AND x.ended_at IS NULL), 0),
        COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), MAX(x.ended_at))
            FROM tl_session x FORCE INDEX (to_sweep) WHERE x.swept_at IS NULL), 0),
        COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), MAX(x.swept_at))
            FROM tl_session x FORCE INDEX (to_sweep)), 0),
        COALESCE((SELECT MAX(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), w.low_water))
            FROM trade_lock_low_water w), 0)),
    EXISTS (SELECT 1 FROM tl_session x FORCE INDEX (to_sweep)
        WHERE x.swept_at IS NULL AND x.ended_at IS NULL
            AND x.alive_until < UTC_TIMESTAMP(6))
FROM tl_clock c WHERE c.one = 1
