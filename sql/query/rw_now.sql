-- Whether this token is the row's last one, what is left of the hold, and how often the row was
-- changed: for a step whose answer was lost, and for one that has no token of its own.
SELECT token = :token AS mine, status, fence,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), max_hold_until) DIV 1000 AS hold_left_ms,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), over_at) DIV 1000 AS left_ms, rev, step
FROM resource_holder
WHERE resource = :resource AND slot = :slot
