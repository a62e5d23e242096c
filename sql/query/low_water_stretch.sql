-- The next stretch of one operation to look through: whether a row stands in it, and where it ends,
-- in microseconds.  It ends at the given moment (then the answer is NULL), or a certain number of
-- rows behind the first one.
SELECT f.next_run_at IS NOT NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.next_run_at)
FROM tl_schema
LEFT JOIN (SELECT next_run_at
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
        + INTERVAL :from_us MICROSECOND
        AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
    ORDER BY op_code, next_run_at LIMIT 1) f ON TRUE
LEFT JOIN (SELECT next_run_at
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at > CAST('1970-01-01' AS DATETIME(6))
        + INTERVAL :from_us MICROSECOND
        AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
    ORDER BY op_code, next_run_at LIMIT 1 OFFSET 1000) l ON TRUE
WHERE one = 1
