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
