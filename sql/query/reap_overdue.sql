-- P rows of one operation whose max_hold ended within a stretch of time, in the order of the index.
SELECT cust_no, serial_no, fence, log_no,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at),
    amount_minor, currency, batch, traceparent
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
    + INTERVAL :from_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
    AND status = 'P' AND lane = 'S'
ORDER BY op_code, next_run_at
LIMIT 256
