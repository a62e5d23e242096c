-- How many rows of one lane have been due for longer than a time without being claimed, and how
-- long the oldest has waited, in microseconds.  It looks at those that are due longest, up to a
-- limit.
SELECT COUNT(*), COALESCE(MAX(late_us), 0)
FROM (SELECT status, updated_at,
        TIMESTAMPDIFF(MICROSECOND, next_run_at, UTC_TIMESTAMP(6)) AS late_us
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at > '1970-01-01'
        AND next_run_at <= UTC_TIMESTAMP(6) - INTERVAL :late_us MICROSECOND AND session_id IS NULL
    ORDER BY op_code, next_run_at
    LIMIT :most) AS oldest
WHERE status = 'F' AND updated_at <= UTC_TIMESTAMP(6) - INTERVAL :late_us MICROSECOND
