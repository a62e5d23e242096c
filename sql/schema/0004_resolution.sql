-- What two operators decided together: a row for the proposal, a row for its confirmation,
-- by two accounts, about one revision of the row.  Nobody of ours may write the column
-- `account`: it is the server's word for who is connected (CURRENT_USER() here is the
-- account of whoever inserts, not of a definer), so that nobody can pass for another.
--   verdict  C the conflict is cleared, Y the failure was paid after all, F the trade in
--            doubt failed
--   part     1 proposed, 2 confirmed
CREATE TABLE IF NOT EXISTS trade_resolution (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    -- the row that both saw
    rev BIGINT UNSIGNED NOT NULL,
    verdict CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    part TINYINT UNSIGNED NOT NULL,
    fence BIGINT UNSIGNED NOT NULL,
    epoch INT UNSIGNED NOT NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    thread_no UUID NOT NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
        DEFAULT (CURRENT_USER()),
    decided_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    PRIMARY KEY (cust_no, serial_no, op_code, rev, verdict, part),
    CONSTRAINT verdict_is_c_y_or_f CHECK (verdict IN ('C', 'Y', 'F')),
    CONSTRAINT part_is_1_or_2 CHECK (part IN (1, 2))
) ENGINE = InnoDB;

-- An account as a person: its name without the host, since one name from two hosts is one
-- person; NULL for an account without a name, which anybody may use.
CREATE OR REPLACE FUNCTION tl_account_name(
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN NULLIF(LEFT(account, CHAR_LENGTH(account) - LOCATE('@', REVERSE(account))), '');

-- Typed by hand or by the command: a confirmation needs a proposal of somebody else, about
-- the row as it is now.
CREATE OR REPLACE TRIGGER trade_resolution_inserted BEFORE INSERT ON trade_resolution
FOR EACH ROW
BEGIN
    DECLARE proposer VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    IF tl_account_name(NEW.account) IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator has an account with a name';
    END IF;
    IF NOT EXISTS (SELECT 1 FROM trade_lock WHERE cust_no = NEW.cust_no
        AND serial_no = NEW.serial_no AND op_code = NEW.op_code AND rev = NEW.rev
        AND fence = NEW.fence AND epoch = NEW.epoch) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the trade is not as the operators saw it';
    END IF;
    IF NEW.part = 2 THEN
        SET proposer = (SELECT account FROM trade_resolution WHERE cust_no = NEW.cust_no
            AND serial_no = NEW.serial_no AND op_code = NEW.op_code AND rev = NEW.rev
            AND verdict = NEW.verdict AND part = 1);
        IF proposer IS NULL THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'nothing was proposed that could be confirmed';
        END IF;
        IF tl_account_name(proposer) = tl_account_name(NEW.account) THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'whoever proposed a decision cannot confirm it';
        END IF;
    END IF;
END;

UPDATE tl_schema SET version = GREATEST(version, 4) WHERE one = 1;
