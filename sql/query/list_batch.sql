-- A page of the trades of one batch, the highest serial number first, after the named one.
SELECT /*include list_columns*/, 0 AS place_us, '' AS place_text
FROM trade_lock FORCE INDEX (batch)
WHERE batch = :batch AND (serial_no < :after_serial OR (serial_no = :after_serial
    AND (cust_no < :after_cust OR (cust_no = :after_cust AND op_code < :after_op))))
ORDER BY serial_no DESC, cust_no DESC, op_code DESC
LIMIT :most
