-- As clock_look.sql, for a process that begins, with what the last process of the same boot knew of
-- the clock (NULL: there was none).  For a process without such a predecessor it tells two things.
-- First, how far a beat or an end of a session, or a low-water mark, lies in the future: only a
-- clock that was set back explains that, unless jumps on record do.  Second, whether a session is
-- silent; then it died, or the clock was set forward just now.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), c.steps,
    c.steps - c.settled,
    IF(s.latest > s.explained,
        GREATEST(0, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), s.latest)), 0),
    EXISTS (SELECT 1 FROM tl_session x FORCE INDEX (to_sweep)
        WHERE x.swept_at IS NULL AND x.ended_at IS NULL
            AND x.alive_until < UTC_TIMESTAMP(6)),
    k.clock_us, k.clock_least_us, k.clock_most_us, k.clock_steps
FROM tl_clock c
LEFT JOIN (SELECT clock_us, clock_least_us, clock_most_us, clock_steps
    FROM tl_session FORCE INDEX (boot) WHERE boot_id = :boot_id
    ORDER BY boot_id DESC, clock_us DESC LIMIT 1) k ON TRUE
JOIN (SELECT GREATEST(
        COALESCE((SELECT MAX(x.alive_until - INTERVAL x.timeout_ms * 1000 MICROSECOND)
            FROM tl_session x FORCE INDEX (to_sweep)
            WHERE x.swept_at IS NULL AND x.ended_at IS NULL), CAST('1970-01-01' AS DATETIME(6))),
        COALESCE((SELECT MAX(x.ended_at) FROM tl_session x FORCE INDEX (to_sweep)
            WHERE x.swept_at IS NULL), CAST('1970-01-01' AS DATETIME(6))),
        COALESCE((SELECT MAX(x.swept_at) FROM tl_session x FORCE INDEX (to_sweep)),
            CAST('1970-01-01' AS DATETIME(6))),
        COALESCE((SELECT MAX(w.low_water) FROM trade_lock_low_water w),
            CAST('1970-01-01' AS DATETIME(6)))) AS latest,
    COALESCE((SELECT MAX(t.noticed_at - INTERVAL t.size_us MICROSECOND)
        FROM tl_clock_step t WHERE t.size_us < 0),
        CAST('1970-01-01' AS DATETIME(6))) AS explained) s
WHERE c.one = 1
