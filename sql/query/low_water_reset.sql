-- All is looked through again, as after a restore.  The rows stay: a mark that is moved from
-- where it no longer is must be seen.
UPDATE trade_lock_low_water
SET low_water = CAST('1970-01-01' AS DATETIME(6)) + INTERVAL 1 MICROSECOND
