-- What the channels told the last attempts of one operation's open trades: how many were answered
-- and how many got no answer, when the last of each was, and when the first without an answer was,
-- in microseconds.  A send that found no connection got none; one whose time was over asked nobody.
-- It looks at a certain number of trades that nobody holds.
SELECT COALESCE(t.channel, 'unknown'), SUM(t.silent = 0), SUM(t.silent = 1),
    MAX(IF(t.silent = 0, t.at_us, NULL)), MAX(IF(t.silent = 1, t.at_us, NULL)),
    MIN(IF(t.silent = 1, t.at_us, NULL))
FROM (SELECT t.channel,
        t.step = 'not sent' OR t.remark LIKE _utf8mb4 'asked: no answer%' AS silent,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.updated_at) AS at_us
    FROM (SELECT cust_no, serial_no, op_code
        FROM trade_lock FORCE INDEX (due)
        WHERE op_code = :op_code AND next_run_at IS NULL AND session_id IS NULL
        ORDER BY cust_no, serial_no
        LIMIT :most) d
    STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
        AND t.op_code = d.op_code
    WHERE t.status = 'P' AND t.repeatable = 0
        AND (t.remark LIKE _utf8mb4 'asked: %'
            OR t.step = 'not sent' AND t.remark NOT LIKE _utf8mb4 'not sent: %')) t
GROUP BY 1
