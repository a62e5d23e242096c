-- The business tables of payouts, in a database of their own beside that of tradelock.  They may as
-- well lie in the same one: then leave out the first statement, and "payout." in books.c.
CREATE DATABASE IF NOT EXISTS payout;

-- One row for each currency; all its payouts change it.
CREATE TABLE IF NOT EXISTS payout.treasury (
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    balance_minor BIGINT NOT NULL,
    reserved_minor BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (currency),
    CONSTRAINT reserved_is_no_debt CHECK (reserved_minor >= 0)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS payout.payout (
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    batch VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    iban VARCHAR(34) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    amount_minor BIGINT NOT NULL,
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    channel_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    channel_ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    created_at DATETIME(6) NOT NULL,
    ended_at DATETIME(6) NULL,
    PRIMARY KEY (serial_no),
    KEY of_batch (batch),
    CONSTRAINT payout_state_is_known CHECK (state IN ('ASKED', 'PAID', 'FAILED'))
) ENGINE = InnoDB;
