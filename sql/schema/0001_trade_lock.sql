-- The hot table: one row for each (customer, serial number, operation code).
-- cust_no is in every unique key, so that partitioning by customer stays possible.
-- Keys are binary and unpadded: 'a', 'A' and 'a ' never meet.
CREATE TABLE IF NOT EXISTS trade_lock (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    lane CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    -- what the last step was; 'by hand' when SQL was typed past the library
    step VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    thread_no UUID NOT NULL,
    log_no UUID NULL,
    session_id UUID NULL,
    token BINARY(16) NOT NULL,
    fence BIGINT UNSIGNED NOT NULL,
    rev BIGINT UNSIGNED NOT NULL,
    epoch INT UNSIGNED NOT NULL DEFAULT 1,
    attempts INT UNSIGNED NOT NULL DEFAULT 0,
    claims INT UNSIGNED NOT NULL DEFAULT 0,
    sends INT UNSIGNED NOT NULL DEFAULT 0,
    send_until DATETIME(6) NULL,
    not_found_since DATETIME(6) NULL,
    -- the channel has shown that it knows the payment: a later "not found" contradicts it
    seen_by_channel TINYINT NOT NULL DEFAULT 0,
    -- a cancel was tried in this epoch: nothing is sent again
    cancel_tried TINYINT NOT NULL DEFAULT 0,
    -- the epoch for which evidence says that money moved
    success_epoch INT UNSIGNED NULL,
    max_hold_until DATETIME(6) NULL,
    next_run_at DATETIME(6) NULL,
    deadline_at DATETIME(6) NULL,
    parked VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NULL,
    conflict TINYINT NOT NULL DEFAULT 0,
    exclusive TINYINT NOT NULL DEFAULT 0,
    -- a mutex or a standalone row: taken over by whoever comes next, never a payment
    repeatable TINYINT NOT NULL DEFAULT 0,
    retryable TINYINT NOT NULL DEFAULT 0,
    proof CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '-',
    fingerprint BINARY(32) NULL,
    channel VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
    channel_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    channel_ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    payload MEDIUMBLOB NULL,
    result BLOB NULL,
    remark VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    created_at DATETIME(6) NOT NULL,
    updated_at DATETIME(6) NOT NULL,
    -- When the step was written, and by which account: the server's to say.  No role may
    -- fill them in (grants.sql), and every change overwrites them (trade_lock_updated).  The
    -- zone of the writing connection does not matter: NOW and UTC_TIMESTAMP differ by exactly
    -- that zone, and SYSDATE is the moment itself even in a long transaction: of an UPDATE
    -- when it has locked the row, of an INSERT before it writes, or waits for a lock.
    logged_at DATETIME(6) NOT NULL DEFAULT (SYSDATE(6)
        + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND),
    account VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
        DEFAULT (USER()),
    -- What the first step wrote, when that was a plain ask; otherwise first_rev is NULL.  No
    -- role may write these: defaults fill them in, and nothing changes them.  So most trades'
    -- history is in their row, and an ending writes no other (trade_lock_kept).
    first_rev BIGINT UNSIGNED NULL DEFAULT (IF(step LIKE 'ask' AND status = 'P'
        AND fence = rev AND epoch = 1 AND attempts = 0 AND claims = 0
        AND send_until <=> IF(sends > 0, max_hold_until, NULL) AND parked IS NULL
        AND conflict = 0 AND proof = '-' AND channel_ref IS NULL AND remark IS NULL
        AND actor IS NULL, rev, NULL)),
    first_logged_at DATETIME(6) NOT NULL DEFAULT (logged_at),
    first_account VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
        DEFAULT (account),
    first_thread_no UUID NOT NULL DEFAULT (thread_no),
    first_log_no UUID NULL DEFAULT (log_no),
    first_session_id UUID NULL DEFAULT (session_id),
    first_token BINARY(16) NOT NULL DEFAULT (token),
    first_sends INT UNSIGNED NOT NULL DEFAULT (sends),
    first_max_hold_until DATETIME(6) NULL DEFAULT (max_hold_until),
    first_next_run_at DATETIME(6) NULL DEFAULT (next_run_at),
    first_channel_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL
        DEFAULT (channel_key),
    -- 1 on a sync row in process whose operation lets one trade of a customer in at a time
    busy TINYINT AS (IF(exclusive = 1 AND status = 'P' AND lane = 'S', 1, NULL)) VIRTUAL,
    PRIMARY KEY (cust_no, serial_no, op_code),
    UNIQUE KEY one_per_customer (cust_no, op_code, busy),
    -- All background work: waiting retry rows, and sync rows by the end of their max_hold.
    -- An ending leaves session_id and next_run_at of a sync row as they are, and so this
    -- index: to take the row out of it would be a quarter of a trade's cost.  What is
    -- finished is stepped over, from the low-water mark on (trade_lock_low_water).
    KEY due (op_code, next_run_at, session_id),
    CONSTRAINT status_is_p_f_or_y CHECK (status IN ('P', 'F', 'Y')),
    CONSTRAINT lane_is_s_or_r CHECK (lane IN ('S', 'R')),
    CONSTRAINT failure_has_proof CHECK (lane = 'R' OR status <> 'F' OR proof <> '-')
) ENGINE = InnoDB;

-- From where on a sync row of an operation may be in process: each one whose next_run_at
-- lies before the mark has ended, or has been opened.  Janitors move it, at most up to now
-- (low_water_clear.sql); the next_run_at that a row gets lies five seconds at least behind
-- the moment at which it is written.
CREATE TABLE IF NOT EXISTS trade_lock_low_water (
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL PRIMARY KEY,
    low_water DATETIME(6) NOT NULL
) ENGINE = InnoDB;

-- The steps between a row's first and its last, which the row tells itself; and all steps of
-- a row that is gone.  The triggers keep what a step replaces, with their definer's
-- rights, so that a trade that is asked for and ended costs no row of history.  No
-- application account can write, change or remove a row of it.  All steps together:
-- trade_lock_log.
-- The serial number stands first in its key: where those rise with time, as most do, the
-- table grows at its end, and not everywhere at once as the customers come.
CREATE TABLE IF NOT EXISTS trade_lock_past (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    rev BIGINT UNSIGNED NOT NULL,
    logged_at DATETIME(6) NOT NULL,
    step VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    thread_no UUID NOT NULL,
    log_no UUID NULL,
    session_id UUID NULL,
    token BINARY(16) NOT NULL,
    fence BIGINT UNSIGNED NOT NULL,
    epoch INT UNSIGNED NOT NULL,
    attempts INT UNSIGNED NOT NULL,
    claims INT UNSIGNED NOT NULL,
    sends INT UNSIGNED NOT NULL,
    send_until DATETIME(6) NULL,
    max_hold_until DATETIME(6) NULL,
    next_run_at DATETIME(6) NULL,
    parked VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NULL,
    conflict TINYINT NOT NULL,
    proof CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    channel_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    channel_ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    remark VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    account VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (serial_no, cust_no, op_code, rev)
) ENGINE = InnoDB;

-- What fenced-out holders, web-hooks and statements know.  Nobody changes a row of it.
CREATE TABLE IF NOT EXISTS trade_evidence (
    evidence_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    epoch INT UNSIGNED NOT NULL,
    channel_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    outcome VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    -- FAILED only: the channel documents this answer as final
    final TINYINT NOT NULL DEFAULT 0,
    channel_ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    source VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    remark VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    thread_no UUID NULL,
    account VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    filed_at DATETIME(6) NOT NULL,
    KEY trade (cust_no, serial_no, op_code, epoch),
    CONSTRAINT outcome_is_known CHECK (outcome IN
        ('SUCCEEDED', 'FAILED', 'DECLINED', 'ACCEPTED', 'PENDING', 'UNKNOWN', 'NOT_SENT'))
) ENGINE = InnoDB;

-- One row for each running process; renewed by one statement whatever it holds.
CREATE TABLE IF NOT EXISTS tl_session (
    session_id UUID NOT NULL PRIMARY KEY,
    program VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    host VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    pid INT UNSIGNED NOT NULL,
    operations VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    connection_name UUID NOT NULL,
    beat BIGINT UNSIGNED NOT NULL DEFAULT 0,
    timeout_ms INT UNSIGNED NOT NULL,
    started_at DATETIME(6) NOT NULL,
    alive_until DATETIME(6) NOT NULL,
    -- set once, by the owner or by an observer; committed before any of its locks is touched
    ended_at DATETIME(6) NULL,
    ended_by UUID NULL,
    -- the owner ended it, and left no trade in process
    settled TINYINT NOT NULL DEFAULT 0,
    -- every lane of it that was in process has been opened
    swept_at DATETIME(6) NULL,
    KEY to_sweep (swept_at, ended_at)
) ENGINE = InnoDB;

-- Which schema this is, the oldest client it still serves, and which server it lives on.
CREATE TABLE IF NOT EXISTS tl_schema (
    one TINYINT NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version INT UNSIGNED NOT NULL,
    oldest_client INT UNSIGNED NOT NULL,
    server_identity VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    restored_at DATETIME(6) NULL
) ENGINE = InnoDB;

-- The version is raised once everything is there (migrate_done.sql).
INSERT IGNORE INTO tl_schema (one, version, oldest_client) VALUES (1, 0, 1);
