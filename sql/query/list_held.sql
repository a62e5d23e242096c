-- A page of one operation's rows that have a holder and no next moment: locks without a retry lane,
-- and retry rows of compensating attempts that run now.
SELECT /*include list_columns*/, 0 AS place_us, session_id AS place_text
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :due_op AND next_run_at IS NULL AND session_id >= :after_text
    AND (session_id > :after_text OR cust_no > :after_cust
        OR (cust_no = :after_cust AND serial_no > :after_serial))
ORDER BY session_id, cust_no, serial_no
LIMIT :most
