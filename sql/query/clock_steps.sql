-- The clock jumps, for the audit: after a jump back, a later moment may lie before an earlier one.
SELECT size_us, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', earliest_at)
FROM tl_clock_step WHERE size_us < 0 ORDER BY step_no
