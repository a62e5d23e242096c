-- Whether this token is the row's last one, and what is left of the hold: for a step whose answer
-- was lost, and for a holder that asks whether it still has the lock.
SELECT token = :token AS mine, status, fence,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), max_hold_until) DIV 1000 AS hold_left_ms,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_until) DIV 1000 AS lease_left_ms
FROM resource_lock
WHERE resource = :resource
