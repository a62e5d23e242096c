-- The operation after the given one, in the order of their names, with its low-water mark in
-- microseconds (one, where there is none: next_run_at = 0 is never due), and the time.  They are
-- read one at a time, so that the server reads one entry of the index for each.  How it would group
-- all of them it decides by what it knew of the table when a handle of it was opened: a handle from
-- the time when the table was small walks the whole index (MariaDB 10.11).
SELECT t.op_code, COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.low_water)
    FROM trade_lock_low_water w WHERE w.op_code = t.op_code), 1),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
FROM trade_lock t FORCE INDEX (due)
WHERE t.op_code > :op_code
ORDER BY t.op_code LIMIT 1
