-- A page of one operation's rows that have neither a holder nor a next moment: finished repeatable
-- trades, closed retry rows, trades that evidence or operators ended, and sync rows whose retry row
-- says what happens next.  The index ends with the primary key, so a page starts after the last
-- customer and serial number of the one before.  The order does not name the columns that are NULL
-- here: with them the server would sort.
SELECT /*include list_columns*/, 0 AS place_us, '' AS place_text
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :due_op AND next_run_at IS NULL AND session_id IS NULL
    AND (cust_no > :after_cust OR (cust_no = :after_cust AND serial_no > :after_serial))
ORDER BY cust_no, serial_no
LIMIT :most
