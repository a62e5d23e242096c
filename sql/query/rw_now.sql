-- Whether this token is the row's last one, and what is left of the hold: for a step whose answer
-- was lost.
SELECT token = :token AS mine, status, fence,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), max_hold_until) DIV 1000 AS hold_left_ms,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), over_at) DIV 1000 AS left_ms
FROM resource_holder
WHERE resource = :resource AND slot = :slot
