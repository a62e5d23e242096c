-- One statement whatever the number of locks.  0 rows: it was declared dead, for good.
UPDATE tl_session
SET beat = beat + 1, alive_until = UTC_TIMESTAMP(6) + INTERVAL timeout_ms * 1000 MICROSECOND
WHERE session_id = ? AND ended_at IS NULL
