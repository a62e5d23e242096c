-- The next stretch of one operation to look through: whether a row stands in it, and where it ends,
-- in microseconds.  It ends at the given moment (then the answer is NULL), or a certain number of
-- rows behind the first one.
SELECT EXISTS (SELECT 1
        FROM trade_lock FORCE INDEX (due)
        WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
            + INTERVAL :from_us MICROSECOND
            AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND),
    (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at)
        FROM trade_lock FORCE INDEX (due)
        WHERE op_code = :op_code AND next_run_at > CAST('1970-01-01' AS DATETIME(6))
            + INTERVAL :from_us MICROSECOND
            AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
        ORDER BY op_code, next_run_at LIMIT 1 OFFSET 1000)
