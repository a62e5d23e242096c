-- Whether a restore is open, how many there were, how often the clock was set, and to how many of
-- these jumps the rows are not adjusted yet.
SELECT tl_restored() <> 0, s.restore_no, c.steps, c.steps - c.settled
FROM tl_schema s JOIN tl_clock c ON c.one = s.one
WHERE s.one = 1
