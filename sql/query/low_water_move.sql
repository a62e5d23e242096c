-- Moves the mark of one operation from where it was seen (the last parameter) to where the
-- next row in process may be.  Of two janitors one moves it.
INSERT INTO trade_lock_low_water (op_code, low_water)
VALUES (?, CAST('1970-01-01' AS DATETIME(6)) + INTERVAL ? MICROSECOND)
ON DUPLICATE KEY UPDATE low_water = IF(
    low_water = CAST('1970-01-01' AS DATETIME(6)) + INTERVAL ? MICROSECOND,
    VALUES(low_water), low_water)
