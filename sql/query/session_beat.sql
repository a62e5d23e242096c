-- One statement whatever the number of locks.  0 rows: declared dead, for good.  The answer brings
-- the number of the beat as the id that was inserted: a lower one than was confirmed before shows
-- that the database went back in time.  It takes along how this process knows the server's clock.
UPDATE tl_session
SET beat = LAST_INSERT_ID(beat + 1),
    alive_until = UTC_TIMESTAMP(6) + INTERVAL timeout_ms * 1000 MICROSECOND,
    boot_id = :boot_id, clock_us = :clock_us, clock_least_us = :clock_least_us,
    clock_most_us = :clock_most_us, clock_steps = :clock_steps
WHERE session_id = :session_id AND ended_at IS NULL
