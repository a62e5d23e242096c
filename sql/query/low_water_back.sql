-- The server's clock was set back, and rows may since have been written before the mark: the last
-- hour is looked through again.
UPDATE trade_lock_low_water SET low_water = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR
WHERE op_code = :op_code AND low_water > UTC_TIMESTAMP(6)
