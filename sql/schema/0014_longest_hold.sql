-- For how long a send of this epoch may at most be under way: a duration, which no clock changes.
-- Nobody but the server fills it in: with a new row its default, which tl_record_holds() sets once
-- the triggers are there, later the trigger trade_lock_updated.  NULL: not known.
--
-- A pause: the server rebuilds trade_lock, which has an indexed virtual column, and lets nobody
-- write to it meanwhile.
ALTER TABLE trade_lock ADD COLUMN IF NOT EXISTS longest_hold_ms INT UNSIGNED NULL;
-- Invisible to the older trigger, which names no columns.
ALTER TABLE trade_lock_past ADD COLUMN IF NOT EXISTS longest_hold_ms INT UNSIGNED NULL INVISIBLE;
-- It was inferred by these.
DROP FUNCTION IF EXISTS tl_hold_us;
DROP FUNCTION IF EXISTS tl_send_us;
DROP FUNCTION IF EXISTS tl_two_clocks;
