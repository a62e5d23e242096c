-- Until which moment the hold of a row in doubt may be over for the index, in microseconds: it says
-- so at most five seconds later than the row (ask.sql).  NULL, at any moment, while a session is
-- ended and not all that it held is opened.
SELECT IF(COUNT(*) = 0,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6) + INTERVAL 5 SECOND), NULL)
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NOT NULL
