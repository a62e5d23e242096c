-- Moves the mark of one operation from where it was seen to where the next row in process may be;
-- after a clock jump back, the mark moves back.  Of two janitors one moves it.  A mark that does
-- not exist yet was seen at 1.
INSERT INTO trade_lock_low_water (op_code, low_water)
VALUES (:op_code, CAST('1970-01-01' AS DATETIME(6)) + INTERVAL IF(:from_us = 1, :to_us,
    1) MICROSECOND)
ON DUPLICATE KEY UPDATE low_water = IF(
    low_water = CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :from_us MICROSECOND,
    CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND, low_water)
