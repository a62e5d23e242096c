-- P rows of one operation under sessions that are ended, neither settled nor swept, within a
-- stretch of time.  The inner SELECT needs the index alone, so rows that the living hold or others
-- finished are not read.  The sessions are read by a consistent read: death is final, and the
-- opening proves it again.
SELECT t.cust_no, t.serial_no, t.fence, t.log_no, t.session_id,
    t.amount_minor, t.currency, t.batch, t.traceparent
FROM (SELECT cust_no, serial_no, op_code
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
        + INTERVAL :from_us MICROSECOND
        AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
        AND session_id IN (SELECT x.session_id FROM tl_session x FORCE INDEX (to_sweep)
            WHERE x.swept_at IS NULL AND x.ended_at IS NOT NULL AND x.settled = 0)) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
WHERE t.status = 'P' AND t.lane = 'S'
LIMIT :most
