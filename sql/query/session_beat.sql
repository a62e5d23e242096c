-- A beat: one statement, however many locks the session holds.  0 rows: the session was ended, for
-- good.  The beat also writes what this process knows of the server's clock.  While the session
-- waits on a server that may yet be promoted (waits is 1) the number stays.
UPDATE tl_session x
LEFT JOIN tl_beat b ON b.session_id = x.session_id AND b.beat = x.beat
SET x.waits = x.waits + :waits, x.beat = x.beat + 1 - :waits, b.beat = b.beat + 1 - :waits,
    x.alive_until = UTC_TIMESTAMP(6) + INTERVAL x.timeout_ms * 1000 MICROSECOND,
    x.boot_id = :boot_id, x.clock_us = :clock_us, x.clock_least_us = :clock_least_us,
    x.clock_most_us = :clock_most_us, x.clock_steps = :clock_steps
WHERE x.session_id = :session_id AND x.ended_at IS NULL
