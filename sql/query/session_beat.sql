-- A beat: one statement, however many locks the session holds.  0 rows: the session was ended, for
-- good.  The beat also writes what this process knows of the server's clock.
UPDATE tl_session
SET beat = beat + 1,
    alive_until = UTC_TIMESTAMP(6) + INTERVAL timeout_ms * 1000 MICROSECOND,
    boot_id = :boot_id, clock_us = :clock_us, clock_least_us = :clock_least_us,
    clock_most_us = :clock_most_us, clock_steps = :clock_steps
WHERE session_id = :session_id AND ended_at IS NULL
