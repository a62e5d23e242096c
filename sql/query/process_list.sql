-- Sessions that nobody has ended.
SELECT session_id, program, host, pid, operations, alive_until >= UTC_TIMESTAMP(6) AS alive,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', started_at) AS started_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now_us,
    GREATEST(0, TIMESTAMPDIFF(MICROSECOND, alive_until, UTC_TIMESTAMP(6)) DIV 1000
        + CAST(timeout_ms AS SIGNED)) AS silent_ms
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NULL
LIMIT :most
