-- How many trades of one operation are held for longer than their max_hold, since no janitor opened
-- them, and for how long the oldest has been, in microseconds.  It looks from the low-water mark to
-- now, and at a certain number of rows at most; of finished ones only those since the mark are among
-- them.
SELECT COUNT(*), COALESCE(MAX(late_us), 0)
FROM (SELECT status, lane, TIMESTAMPDIFF(MICROSECOND, next_run_at, UTC_TIMESTAMP(6)) AS late_us
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code
        AND next_run_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :from_us MICROSECOND
        AND next_run_at <= UTC_TIMESTAMP(6)
    ORDER BY op_code, next_run_at
    LIMIT :most) AS passed
WHERE status = 'P' AND lane = 'S'
