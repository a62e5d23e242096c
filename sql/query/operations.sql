-- The operations there are, each with its low-water mark in microseconds (one, where there
-- is none: next_run_at = 0 is never due), by jumping from one to the next in the index.  Sent as text:
-- when the table grows between two executions of the prepared statement, the server
-- (MariaDB 10.11) forgets the jumps and walks the whole index.  In the order of their names.
SELECT o.op_code, COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.low_water), 1)
FROM (SELECT op_code FROM trade_lock FORCE INDEX (due) GROUP BY op_code) o
LEFT JOIN trade_lock_low_water w ON w.op_code = o.op_code
ORDER BY o.op_code
