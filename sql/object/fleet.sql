-- A database that is a shard of a fleet.  The triggers that call these are made by `tradelock fleet
-- join` alone (sql/fleet), so a database of no fleet reads no slot.

-- Refuses what is not for this shard: 31003 where the customer's slot is not owned here, 31004 while
-- it is leaving.  what: 0 a row that is over is changed, or evidence or a decision filed; 1 a trade
-- or a hold begins; 2 a row is removed; 3 a finding is closed, which is about the rows that are here,
-- whoever has the slot.
--
-- The slot's row is locked in share mode until the transaction ends.  So whoever moves the slot
-- waits for all who were let through, and reads what they committed.  A consistent read would let an
-- ask commit after the slot was seen empty.  Nobody but a mover locks the row otherwise.
--
-- Where a trade begins or a finding is closed, whoever cannot have it at once is refused, by what the
-- slot was when the mover came: where it is owned or leaving 31004, and not 1205, which would say
-- that somebody has the trade.  What was committed before this statement began is the oldest that
-- this may be: by then the trade was not here, or it is told as it is.  All others hear 1205, or wait
-- if they wait for rows: a claim leaves out that row, and goes on with those of other slots.  Each
-- SELECT has its own alias: within a trigger the server opens a table once for each of its aliases,
-- and locks as the strongest of their statements says, so all of one alias would skip the row.  In a
-- trigger the server skips for the first row of a statement only (10.11): a later row hears 1205, and
-- the library sends such a group again in halves.
--
-- An arriving slot answers as one that is not here: its rows may not be here yet, so nobody can say
-- here what became of a trade.  Only the mover writes there, who knows the token.
CREATE OR REPLACE PROCEDURE tl_slot_check(
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin, IN what TINYINT)
READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE its_slot INT UNSIGNED DEFAULT tl_customer_slot(cust);
    DECLARE its_state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE held_state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE is_sealed TINYINT;
    DECLARE movers BINARY(16);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET its_state = 'none';

    IF what IN (1, 3) THEN
        SELECT state, sealed, token INTO its_state, is_sealed, movers
        FROM tl_slot AS free WHERE slot = its_slot LOCK IN SHARE MODE SKIP LOCKED;
        IF its_state = 'none' THEN
            -- Not in the condition: there it would lock the row.
            SELECT state INTO held_state FROM tl_slot AS held WHERE slot = its_slot;
        END IF;
    ELSE
        SELECT state, sealed, token INTO its_state, is_sealed, movers
        FROM tl_slot WHERE slot = its_slot LOCK IN SHARE MODE;
    END IF;
    IF held_state IN ('owned', 'leaving') OR (held_state IS NOT NULL AND what = 3) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31004,
            MESSAGE_TEXT = 'the slot of this customer is being moved to another shard';
    END IF;
    IF its_state = 'leaving' AND (is_sealed = 1 OR what = 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31004,
            MESSAGE_TEXT = 'the slot of this customer is being moved to another shard';
    END IF;
    -- NULL is what a statement that was killed tells.
    IF (its_state IN ('owned', 'leaving') OR (its_state = 'gone' AND what >= 2)
        OR (its_state = 'none' AND what = 3)
        OR (its_state = 'arriving' AND movers = CAST(@tl_mover AS BINARY(16)))) IS NOT TRUE THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31003,
            MESSAGE_TEXT = 'the slot of this customer is not of this shard';
    END IF;
END;

-- The same for a step that found no row, in any database.
CREATE OR REPLACE PROCEDURE tl_slot_asked(
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin)
READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE its_fleet VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin;

    SELECT fleet INTO its_fleet FROM tl_schema WHERE one = 1;
    IF its_fleet IS NOT NULL THEN
        CALL tl_slot_check(cust, 0);
    END IF;
END;

-- Whether this connection copies the rows of an arriving slot: then evidence and decisions keep
-- what they say, and change no trade.  The trigger of sql/fleet compares the slot.  What the session
-- has set gets a type: the warning of a comparison with a number would tell the token.
CREATE OR REPLACE FUNCTION tl_slot_copies() RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN @tl_mover IS NOT NULL AND COALESCE(EXISTS (SELECT 1 FROM tl_slot
    WHERE state = 'arriving' AND token = CAST(@tl_mover AS BINARY(16))), 0);
