-- Steps of the server's clock: a small restore that tradelock accepts by itself.
--
-- Rows carry moments of that clock.  Each process compares it with its own CLOCK_BOOTTIME;
-- who sees that it was set records the step here, and until what it did to the rows is
-- settled, page by page, nothing is claimed, armed or purged.

-- One row a step; append only.
CREATE TABLE IF NOT EXISTS tl_clock_step (
    step_no INT UNSIGNED NOT NULL PRIMARY KEY,
    -- forward above 0; the least that it can have been
    size_us BIGINT NOT NULL,
    -- by the clock as it is since: it was set after the first, and noticed at the second
    earliest_at DATETIME(6) NOT NULL,
    noticed_at DATETIME(6) NOT NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    account VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS tl_clock (
    one TINYINT NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    -- how many were recorded, and of how many the rows know
    steps INT UNSIGNED NOT NULL DEFAULT 0,
    settled INT UNSIGNED NOT NULL DEFAULT 0,
    -- the last row that knows of the step that is being settled
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL DEFAULT '',
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL DEFAULT '',
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL DEFAULT ''
) ENGINE = InnoDB;
INSERT IGNORE INTO tl_clock (one) VALUES (1);
