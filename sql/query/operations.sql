-- The operations there are, by jumping from one to the next in the index.  Sent as text:
-- when the table grows between two executions of the prepared statement, the server
-- (MariaDB 10.11) forgets the jumps and walks the whole index.
SELECT op_code FROM trade_lock FORCE INDEX (due) GROUP BY op_code
