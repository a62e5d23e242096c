-- A page of one operation's rows that have a holder and no next moment: locks without a retry lane,
-- and retry rows of compensating attempts that run now.
SELECT /*include list_columns*/, session_id
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at IS NULL AND session_id >= :session_id
ORDER BY session_id, cust_no, serial_no
LIMIT :most OFFSET :skip
