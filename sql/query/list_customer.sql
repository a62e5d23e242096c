-- A page of one customer's rows, in the order of the primary key, after the row named by
-- the second to fourth parameter.
SELECT cust_no, serial_no, op_code, lane, status, conflict, parked IS NOT NULL AS is_parked,
    TIMESTAMPDIFF(MICROSECOND, updated_at, UTC_TIMESTAMP(6)) DIV 1000 AS age_ms
FROM trade_lock
WHERE cust_no = ? AND (serial_no > ? OR (serial_no = ? AND op_code > ?))
ORDER BY cust_no, serial_no, op_code
LIMIT ?
