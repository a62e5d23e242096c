-- The trades of one operation that nobody holds: how many and how much money, by state, channel,
-- currency and age, and how old the oldest is, in seconds.  They stand in the index without a
-- holder and without a next moment of their own; of finished rows only those of repeatable trades
-- do, which have operations of their own (state 'other').  An age is one of five: under a minute,
-- ten minutes, an hour, a day, or more.  It looks at a certain number at most.
SELECT CASE
        WHEN t.status <> 'P' OR t.repeatable = 1 THEN 'other'
        WHEN r.status = 'F' AND r.epoch = t.epoch AND r.parked IS NOT NULL THEN 'parked'
        WHEN t.sends > 0 THEN 'in_doubt'
        ELSE 'queued'
    END AS state,
    COALESCE(t.channel, 'unknown'), COALESCE(t.currency, 'unknown'),
    (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE)
        + (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 10 MINUTE)
        + (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 1 HOUR)
        + (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 1 DAY) AS age,
    COUNT(*), CAST(COALESCE(SUM(t.amount_minor), 0) AS CHAR),
    GREATEST(0, MAX(TIMESTAMPDIFF(SECOND, t.created_at, UTC_TIMESTAMP(6))))
FROM (SELECT cust_no, serial_no, op_code
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at IS NULL AND session_id IS NULL
    ORDER BY cust_no, serial_no
    LIMIT :most) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
LEFT JOIN trade_lock r ON r.cust_no = d.cust_no AND r.serial_no = d.serial_no
    AND r.op_code = :retry_op AND r.repeatable = 0
GROUP BY 1, 2, 3, 4
