-- A page of one customer's rows, in the order of the primary key, after the row named by the second
-- to fourth parameter.
SELECT /*include list_columns*/
FROM trade_lock
WHERE cust_no = :cust_no AND (serial_no > :serial_no OR (serial_no = :serial_no
    AND op_code > :op_code))
ORDER BY cust_no, serial_no, op_code
LIMIT :most
