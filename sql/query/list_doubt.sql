-- Until which end of a hold a held row may be in doubt, in microseconds: until now; NULL, at any,
-- while a session is ended and not all that it held is opened.
SELECT IF(COUNT(*) = 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), NULL)
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NOT NULL
