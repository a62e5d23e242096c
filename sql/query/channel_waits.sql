-- What waits for each channel of one operation, of the trades that nobody holds: how many trades;
-- of their last attempts, how many were answered and how many got no answer, when the last of each
-- was, and since when there was none, in microseconds; and how many rows were looked at, which are
-- a certain number at most.  A send that found no connection got no answer; one whose time was over
-- asked nobody.  A trade of which the channel never said anything had no answer since it was made,
-- any other since its last attempt.  An attempt of before the last minutes, as that of a parked
-- trade, says nothing of how the channel is now.
SELECT COALESCE(t.channel, 'unknown') AS channel, SUM(t.waits), SUM(t.silent = 0),
    SUM(t.silent = 1), MAX(IF(t.silent = 0, t.at_us, NULL)),
    MAX(IF(t.silent = 1 AND t.is_new, t.at_us, NULL)),
    MIN(IF(t.silent = 1 AND t.is_new, t.since_us, NULL)), COUNT(*)
FROM (SELECT t.channel, t.status = 'P' AND t.repeatable = 0 AS waits,
        IF(t.status = 'P' AND t.repeatable = 0 AND (t.remark LIKE _utf8mb4 'asked: %'
            OR t.step = 'not sent' AND t.remark NOT LIKE _utf8mb4 'not sent: %'),
            t.step = 'not sent' OR t.remark LIKE _utf8mb4 'asked: no answer%', NULL) AS silent,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.updated_at) AS at_us,
        t.updated_at >= UTC_TIMESTAMP(6) - INTERVAL :minutes MINUTE AS is_new,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01',
            IF(t.seen_by_channel = 0 AND t.not_found_since IS NULL, t.created_at, t.updated_at))
            AS since_us
    FROM (SELECT cust_no, serial_no, op_code
        FROM trade_lock FORCE INDEX (due)
        WHERE op_code = :op_code AND next_run_at IS NULL AND session_id IS NULL
        ORDER BY cust_no, serial_no
        LIMIT :most) d
    STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
        AND t.op_code = d.op_code) t
GROUP BY channel
