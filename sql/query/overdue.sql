-- How many rows of one lane have been due for longer than a time without being claimed, and how
-- long the oldest has waited, in microseconds.  It looks at those that are due longest, up to a
-- limit.  Trades of :unpaused_op, unless that is NULL, are left out while their channel is paused.
SELECT COUNT(*), COALESCE(MAX(late_us), 0)
FROM (SELECT cust_no, serial_no, status, updated_at,
        TIMESTAMPDIFF(MICROSECOND, next_run_at, UTC_TIMESTAMP(6)) AS late_us
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at > '1970-01-01'
        AND next_run_at <= UTC_TIMESTAMP(6) - INTERVAL :late_us MICROSECOND AND session_id IS NULL
    ORDER BY op_code, next_run_at
    LIMIT :most) AS oldest
LEFT JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = oldest.cust_no
    AND s.serial_no = oldest.serial_no AND s.op_code = :unpaused_op
LEFT JOIN trade_channel p FORCE INDEX (PRIMARY) ON p.channel = s.channel COLLATE ascii_nopad_bin
    AND p.op_code IN ('', s.op_code) AND p.paused = 1
WHERE oldest.status = 'F' AND p.channel IS NULL
    AND oldest.updated_at <= UTC_TIMESTAMP(6) - INTERVAL :late_us MICROSECOND
