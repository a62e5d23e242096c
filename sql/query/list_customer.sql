-- A page of one customer's rows, the highest serial number first, after the named row.
SELECT /*include list_columns*/, 0 AS place_us, '' AS place_text
FROM trade_lock
WHERE cust_no = :after_cust AND (serial_no < :after_serial OR (serial_no = :after_serial
    AND op_code < :after_op))
ORDER BY cust_no DESC, serial_no DESC, op_code DESC
LIMIT :most
