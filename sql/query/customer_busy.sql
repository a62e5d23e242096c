-- Which other trade of the customer is in process.
SELECT serial_no, state
FROM trade_lock_state
WHERE cust_no = :cust_no AND op_code = :op_code AND busy = 1
