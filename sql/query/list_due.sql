-- A page of one operation's rows that have a next moment, the first first: the end of max_hold for
-- sync rows, also finished ones; the next attempt for retry rows.  It starts after the named row
-- and ends before a moment, in microseconds.  after_text is the session of the named row, '' where
-- it has none.
SELECT /*include list_columns*/,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at) AS place_us,
    COALESCE(CAST(session_id AS CHAR), '') AS place_text
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :due_op
    AND next_run_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :end_us MICROSECOND
    AND (next_run_at > CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
        OR IF(:after_text = '', session_id IS NOT NULL OR cust_no > :after_cust
                OR (cust_no = :after_cust AND serial_no > :after_serial),
            session_id > :after_text OR (session_id = :after_text
                AND (cust_no > :after_cust
                    OR (cust_no = :after_cust AND serial_no > :after_serial)))))
ORDER BY op_code, next_run_at, session_id, cust_no, serial_no
LIMIT :most
