-- The clock jumps, for the audit: where it was set back a moment may lie before one that came
-- earlier.
SELECT size_us, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', earliest_at)
FROM tl_clock_step WHERE size_us < 0 ORDER BY step_no
