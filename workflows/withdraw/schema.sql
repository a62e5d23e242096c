-- The sample's own business tables.  They live beside the tables of tradelock and know
-- nothing of them: the lock row and these rows agree because they are written in the same
-- transactions.
CREATE TABLE IF NOT EXISTS account (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    balance_minor BIGINT NOT NULL,
    frozen_minor BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (cust_no, currency),
    -- Freezing wants it covered; what left the bank after all is booked all the same.
    CONSTRAINT frozen_is_positive CHECK (0 <= frozen_minor)
) ENGINE = InnoDB;

-- One row for each attempt with a channel key of its own.
CREATE TABLE IF NOT EXISTS withdraw_order (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    epoch INT UNSIGNED NOT NULL,
    amount_minor BIGINT NOT NULL,
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    payee VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    channel_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at DATETIME(6) NOT NULL,
    ended_at DATETIME(6) NULL,
    PRIMARY KEY (cust_no, serial_no, epoch),
    CONSTRAINT state_is_known CHECK (state IN ('FROZEN', 'PAID', 'RELEASED'))
) ENGINE = InnoDB;

-- What was paid.  The key lets a trade be booked once, whatever happens above.
CREATE TABLE IF NOT EXISTS ledger (
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    amount_minor BIGINT NOT NULL,
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    payee VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    channel_ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    channel_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    booked_at DATETIME(6) NOT NULL,
    PRIMARY KEY (cust_no, serial_no)
) ENGINE = InnoDB;
