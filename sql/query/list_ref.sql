-- A page of the trades that the channel calls so, the highest serial number first, after the named
-- one.  A reference is one trade's as a rule; nothing says that it must be.  The order does not name
-- the reference: with it the server would sort.
SELECT /*include list_columns*/, 0 AS place_us, '' AS place_text
FROM trade_lock FORCE INDEX (channel_ref)
WHERE channel_ref = :channel_ref AND (serial_no < :after_serial OR (serial_no = :after_serial
    AND (cust_no < :after_cust OR (cust_no = :after_cust AND op_code < :after_op))))
ORDER BY serial_no DESC, cust_no DESC, op_code DESC
LIMIT :most
