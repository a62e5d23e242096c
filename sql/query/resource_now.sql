-- Whether this token is the row's last one, what is left of the hold, and how often the row was
-- changed: for a step whose answer was lost, for a holder that asks whether it still has the lock,
-- and for a renewal, which has no token of its own.
SELECT token = :token AS mine, status, fence,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), max_hold_until) DIV 1000 AS hold_left_ms,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_until) DIV 1000 AS lease_left_ms,
    rev
FROM resource_lock
WHERE resource = :resource
