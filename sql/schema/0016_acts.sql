-- What operators did, where no other table says it, or none by time: retries, evidence that they
-- filed, what they did to many trades at once, purges, audits, resources that were taken away.
-- Append only; procedures write it (sql/object/act.sql), and the server says who and when.
--   what    retry, evidence, statement, purge, audit, unlock ...: a word for programs
--   said    what was asked for, in the command's own words
--   planned how many rows the operator saw and confirmed; 0: it is not about rows
--   done, skipped  how many of them were done, and how many were left alone; always up to date
--   counts  what it came to, as "trades=12 sessions=3"
--   ended_at NULL: under way, or whoever did it was stopped
CREATE TABLE IF NOT EXISTS tl_act (
    act_no BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    what VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    said VARCHAR(1023) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    log_no UUID NULL,
    planned BIGINT UNSIGNED NOT NULL DEFAULT 0,
    done BIGINT UNSIGNED NOT NULL DEFAULT 0,
    skipped BIGINT UNSIGNED NOT NULL DEFAULT 0,
    counts VARCHAR(1023) CHARACTER SET ascii COLLATE ascii_bin NULL,
    begun_at DATETIME(6) NOT NULL,
    ended_at DATETIME(6) NULL,
    KEY begun (begun_at)
) ENGINE = InnoDB;

-- Which rows, and what became of each.  A row that was done is written in the transaction that did
-- it.  `fence` is what the operator saw.
CREATE TABLE IF NOT EXISTS tl_act_row (
    act_no BIGINT UNSIGNED NOT NULL,
    row_no BIGINT UNSIGNED NOT NULL,
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    fence BIGINT UNSIGNED NOT NULL,
    result VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    acted_at DATETIME(6) NOT NULL,
    PRIMARY KEY (act_no, row_no)
) ENGINE = InnoDB;

-- The acts that other tables tell, by time.
ALTER TABLE trade_resolution ADD KEY IF NOT EXISTS decided (decided_at);
ALTER TABLE audit_closing ADD KEY IF NOT EXISTS closed (closed_at);
ALTER TABLE tl_restore ADD KEY IF NOT EXISTS decided (decided_at);
