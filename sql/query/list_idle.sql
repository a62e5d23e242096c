-- A page of one operation's rows that have neither a holder nor a next moment: finished repeatable
-- trades, closed retry rows, and sync rows whose retry row says what happens next.  The index ends
-- with the primary key, so a page starts after the last customer and serial number of the one
-- before. The order does not name the columns that are NULL here: with them the server would sort.
SELECT /*include list_columns*/
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at IS NULL AND session_id IS NULL
    AND (cust_no > :cust_no OR (cust_no = :cust_no AND serial_no > :serial_no))
ORDER BY cust_no, serial_no
LIMIT :most
