-- How many compensating attempts of one lane have been due for a time, in microseconds, without
-- being claimed, at most so many as are of interest, and how long the oldest of them has waited.
SELECT COUNT(*), COALESCE(MAX(late_us), 0)
FROM (SELECT TIMESTAMPDIFF(MICROSECOND, next_run_at, UTC_TIMESTAMP(6)) AS late_us
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = ? AND next_run_at > '1970-01-01'
        AND next_run_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
        AND status = 'F' AND updated_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
    ORDER BY op_code, next_run_at
    LIMIT ?) AS late
