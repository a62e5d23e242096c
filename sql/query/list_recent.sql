-- A page of one operation's rows that have a next moment, the latest first, from the row after the
-- named one back to a moment.  A finished trade keeps the end of its last hold, so these are the
-- trades in the order in which they were last asked for or claimed.  after_text is the session of
-- the named row, '' where it has none.
SELECT /*include list_columns*/,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at) AS place_us,
    COALESCE(CAST(session_id AS CHAR), '') AS place_text
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :due_op
    AND next_run_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :from_us MICROSECOND
    AND next_run_at <= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
    AND (next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
        OR IF(:after_text = '', session_id IS NULL AND (cust_no < :after_cust
                OR (cust_no = :after_cust AND serial_no < :after_serial)),
            session_id IS NULL OR session_id < :after_text OR (session_id = :after_text
                AND (cust_no < :after_cust
                    OR (cust_no = :after_cust AND serial_no < :after_serial)))))
ORDER BY op_code DESC, next_run_at DESC, session_id DESC, cust_no DESC, serial_no DESC
LIMIT :most
