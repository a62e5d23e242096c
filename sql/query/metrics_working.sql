-- The trades of one operation that a compensating attempt holds now, as metrics_trades.sql tells
-- them.  Their retry rows have a holder and no next moment.
SELECT IF(t.status = 'P', 'working', 'other') AS state,
    COALESCE(t.channel, 'unknown'), COALESCE(t.currency, 'unknown'),
    (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE)
        + (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 10 MINUTE)
        + (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 1 HOUR)
        + (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 1 DAY) AS age,
    COUNT(*), CAST(COALESCE(SUM(t.amount_minor), 0) AS CHAR),
    GREATEST(0, MAX(TIMESTAMPDIFF(SECOND, t.created_at, UTC_TIMESTAMP(6))))
FROM (SELECT cust_no, serial_no
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :retry_op AND next_run_at IS NULL
        AND session_id >= '00000000-0000-0000-0000-000000000000'
    ORDER BY session_id, cust_no, serial_no
    LIMIT :most) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = :op_code
GROUP BY 1, 2, 3, 4
