-- Filing evidence locks the sync row first, so it comes wholly before or wholly after an ending.
SELECT status, epoch, channel_key, fence, amount_minor, currency, batch, traceparent
FROM trade_lock
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code
FOR UPDATE
