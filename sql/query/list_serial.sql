-- A page of the rows that are in conflict, or of those that are not, whose serial numbers lie
-- between two: the highest number first, from the row after the named one on.  Parked rows have a
-- list of their own (list_parked.sql).  The order does not name the columns that are NULL here or
-- given: with the first the server would sort.
SELECT /*include list_columns*/, 0 AS place_us, '' AS place_text
FROM trade_lock FORCE INDEX (serial)
WHERE conflict = :conflict AND parked IS NULL
    AND serial_no >= :first_serial AND serial_no <= :last_serial
    AND (serial_no < :after_serial OR (serial_no = :after_serial
        AND (cust_no < :after_cust OR (cust_no = :after_cust AND op_code < :after_op))))
ORDER BY conflict DESC, serial_no DESC, cust_no DESC, op_code DESC
LIMIT :most
