-- A page of the parked rows whose serial numbers lie between two, by reason, the highest number of
-- each first, from the row after the named one on.
SELECT /*include list_columns*/, 0 AS place_us, parked AS place_text
FROM trade_lock FORCE INDEX (serial)
WHERE conflict = :conflict AND parked IS NOT NULL
    AND serial_no >= :first_serial AND serial_no <= :last_serial
    AND (parked < :after_text OR (parked = :after_text
        AND (serial_no < :after_serial OR (serial_no = :after_serial
            AND (cust_no < :after_cust OR (cust_no = :after_cust AND op_code < :after_op))))))
ORDER BY conflict DESC, parked DESC, serial_no DESC, cust_no DESC, op_code DESC
LIMIT :most
