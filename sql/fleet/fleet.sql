-- What only a shard of a fleet has.  `tradelock fleet join` makes it, `tradelock migrate` keeps it.

-- To which slot a customer belongs.  Made once, where it is missing: a service may put its own rule
-- in its place, at all shards, before the first customer is there.
CREATE OR REPLACE FUNCTION tl_customer_slot(
    cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin)
RETURNS SMALLINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN CRC32(cust) % 1024;

-- A new row.  An ending is no new one (the group statement inserts it, and changes the row that is
-- there), nor is the lane of a trade that is in process.
CREATE OR REPLACE TRIGGER trade_lock_begun BEFORE INSERT ON trade_lock
FOR EACH ROW
BEGIN
    IF (NEW.step <> _ascii 'end' AND (NEW.lane <> 'R' OR NEW.status <> 'F'))
        OR @tl_mover IS NOT NULL THEN
        CALL tl_slot_check(NEW.cust_no, 1);
    END IF;
END;

-- Whoever has a trade in hand may go on and end it.  A row that is over, or a lane that waits, may
-- be changed where the slot is; a hold begins only where it is owned: of a trade that is tried anew,
-- or of a repeatable one that is taken over.
CREATE OR REPLACE TRIGGER trade_lock_moved BEFORE UPDATE ON trade_lock
FOR EACH ROW
BEGIN
    IF OLD.status <> 'P' OR NEW.epoch <> OLD.epoch THEN
        CALL tl_slot_check(NEW.cust_no,
            NEW.status = 'P' AND (NEW.lane = 'S' OR NEW.repeatable = 1));
    END IF;
END;

CREATE OR REPLACE TRIGGER trade_lock_removed BEFORE DELETE ON trade_lock
FOR EACH ROW
CALL tl_slot_check(OLD.cust_no, 2);

CREATE OR REPLACE TRIGGER trade_evidence_known BEFORE INSERT ON trade_evidence
FOR EACH ROW
CALL tl_slot_check(NEW.cust_no, 0);

CREATE OR REPLACE TRIGGER trade_resolution_known BEFORE INSERT ON trade_resolution
FOR EACH ROW
CALL tl_slot_check(NEW.cust_no, 0);

CREATE OR REPLACE TRIGGER audit_closing_known BEFORE INSERT ON audit_closing
FOR EACH ROW
CALL tl_slot_check(NEW.cust_no, 3);
