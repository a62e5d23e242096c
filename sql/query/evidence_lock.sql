-- Filing evidence takes the sync row first, so that it meets an ending either before or after,
-- never in between.
SELECT status, epoch, channel_key, fence
FROM trade_lock
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code
FOR UPDATE
