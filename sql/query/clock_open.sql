-- As clock_look.sql, for a process that begins, with what the last process of the same boot knew of
-- the clock (NULL: there was none).  For a process without such a predecessor it tells two things.
-- First, how far a beat or an end of a session, or a low-water mark, lies in the future: only a
-- clock that was set back explains that, unless jumps on record do.  Second, whether a session is
-- silent; then it died, or the clock was set forward just now.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), c.steps,
    c.steps - c.settled,
    IF(s.latest > s.explained,
        GREATEST(0, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), s.latest)), 0),
    q.is_silent IS NOT NULL,
    k.clock_us, k.clock_least_us, k.clock_most_us, k.clock_steps
FROM tl_clock c
LEFT JOIN (SELECT clock_us, clock_least_us, clock_most_us, clock_steps
    FROM tl_session FORCE INDEX (boot) WHERE boot_id = :boot_id
    ORDER BY boot_id DESC, clock_us DESC LIMIT 1) k ON TRUE
LEFT JOIN (SELECT 1 AS is_silent FROM tl_session FORCE INDEX (to_sweep)
    WHERE swept_at IS NULL AND ended_at IS NULL AND alive_until < UTC_TIMESTAMP(6)
    LIMIT 1) q ON TRUE
JOIN (SELECT GREATEST(alive.at, ended.at, swept.at, mark.at) AS latest,
        COALESCE(jump.at, CAST('1970-01-01' AS DATETIME(6))) AS explained
    FROM (SELECT COALESCE(MAX(alive_until - INTERVAL timeout_ms * 1000 MICROSECOND),
                CAST('1970-01-01' AS DATETIME(6))) AS at
            FROM tl_session FORCE INDEX (to_sweep)
            WHERE swept_at IS NULL AND ended_at IS NULL) alive,
        (SELECT COALESCE(MAX(ended_at), CAST('1970-01-01' AS DATETIME(6))) AS at
            FROM tl_session FORCE INDEX (to_sweep) WHERE swept_at IS NULL) ended,
        (SELECT COALESCE(MAX(swept_at), CAST('1970-01-01' AS DATETIME(6))) AS at
            FROM tl_session FORCE INDEX (to_sweep)) swept,
        (SELECT COALESCE(MAX(low_water), CAST('1970-01-01' AS DATETIME(6))) AS at
            FROM trade_lock_low_water) mark,
        (SELECT MAX(noticed_at - INTERVAL size_us MICROSECOND) AS at
            FROM tl_clock_step WHERE size_us < 0) jump) s
WHERE c.one = 1
