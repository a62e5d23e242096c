-- The operation after the given one, in the order of the names, with its low-water mark in
-- microseconds (1 if there is none, since next_run_at = 0 is never due), and the time.  Operations
-- are read one at a time, so the server reads one entry of the index for each.  A GROUP BY over all
-- of them is planned by what the server knew of the table when it opened its handle: with a handle
-- from the time when the table was small, it walks the whole index (MariaDB 10.11).
SELECT t.op_code, COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.low_water), 1),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
FROM trade_lock t FORCE INDEX (due)
LEFT JOIN trade_lock_low_water w ON w.op_code = t.op_code
WHERE t.op_code > :op_code
ORDER BY t.op_code LIMIT 1
