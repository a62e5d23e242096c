-- Sessions that nobody has cleared up, oldest first: who it is, since when, how long its last beat
-- is ago, whether it was ended, what time it is, whether the session has said that it obeys the
-- drain that is on record (drain_obeyed.sql), and which decisions about channels its program obeys.
SELECT session_id, program, pid, host, COALESCE(operations, ''),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', started_at),
    GREATEST(0, TIMESTAMPDIFF(MICROSECOND,
        alive_until - INTERVAL timeout_ms * 1000 MICROSECOND, UTC_TIMESTAMP(6))),
    timeout_ms, ended_at IS NOT NULL,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
    COALESCE(obeys_us = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', d.decided_at), 0),
    obeys
FROM tl_session FORCE INDEX (to_sweep)
LEFT JOIN trade_channel d FORCE INDEX (PRIMARY)
    ON d.channel = '*' AND d.op_code = '' AND d.paused = 1
WHERE swept_at IS NULL
ORDER BY started_at, session_id LIMIT 1000
