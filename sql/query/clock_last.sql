-- The last clock jump, for the doctor: how many jumps there were, to how many of them the rows are
-- not adjusted yet, its size, how long ago (by today's clock) it was noticed, and by whom.
SELECT c.steps, c.steps - c.settled, s.size_us,
    TIMESTAMPDIFF(MICROSECOND, s.noticed_at, UTC_TIMESTAMP(6)), s.actor
FROM tl_clock c LEFT JOIN tl_clock_step s ON s.step_no = c.steps
WHERE c.one = 1
