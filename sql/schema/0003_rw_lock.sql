-- A resource that was ever locked for reading or writing.  The row is made by the first
-- ask, on its own, and never changes: whoever is about to be granted something locks it
-- for the length of that transaction, so that looking and granting are one step.
CREATE TABLE IF NOT EXISTS rw_lock (
    resource VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL PRIMARY KEY,
    created_at DATETIME(6) NOT NULL
) ENGINE = InnoDB;

-- One row for each holder of a read-write lock: nothing is counted, so nothing can be
-- miscounted.  A released row is free and serves the next holder; there are as many rows
-- as there ever were holders at once, and none is removed, so that nobody who comes too
-- late meets a gap.
--   kind        R reads, W writes
--   status      H held, D held and its business done, W waiting (a writer's intent, which
--               keeps new readers out), F free
--   by_session  1: dead too when its session has ended; 0: its lease alone decides
--   over_at     it is dead from then on; NULL when free.  A lease's end, or max_hold's
CREATE TABLE IF NOT EXISTS resource_holder (
    resource VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    slot SMALLINT UNSIGNED NOT NULL,
    kind CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    -- what the last step was; 'by hand' when SQL was typed past the library
    step VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    thread_no UUID NOT NULL,
    log_no UUID NULL,
    session_id UUID NULL,
    by_session TINYINT NOT NULL,
    token BINARY(16) NOT NULL,
    fence BIGINT UNSIGNED NOT NULL,
    rev BIGINT UNSIGNED NOT NULL,
    over_at DATETIME(6) NULL,
    max_hold_until DATETIME(6) NULL,
    remark VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    acquired_at DATETIME(6) NOT NULL,
    done_at DATETIME(6) NULL,
    released_at DATETIME(6) NULL,
    updated_at DATETIME(6) NOT NULL,
    PRIMARY KEY (resource, slot),
    KEY held (over_at, session_id),
    CONSTRAINT holder_reads_or_writes CHECK (kind IN ('R', 'W')),
    CONSTRAINT holder_is_h_d_w_or_f CHECK (status IN ('H', 'D', 'W', 'F')),
    CONSTRAINT held_has_end CHECK ((status = 'F') = (over_at IS NULL)),
    CONSTRAINT writers_wait CHECK (status <> 'W' OR kind = 'W')
) ENGINE = InnoDB;

-- Acquired, business done, released, each with its time: one row for each step of a
-- holder, written by the triggers with their definer's rights.
CREATE TABLE IF NOT EXISTS resource_holder_log (
    resource VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    slot SMALLINT UNSIGNED NOT NULL,
    rev BIGINT UNSIGNED NOT NULL,
    logged_at DATETIME(6) NOT NULL,
    kind CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    step VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    thread_no UUID NOT NULL,
    log_no UUID NULL,
    session_id UUID NULL,
    token BINARY(16) NOT NULL,
    fence BIGINT UNSIGNED NOT NULL,
    over_at DATETIME(6) NULL,
    remark VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    account VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (resource, slot, rev)
) ENGINE = InnoDB;

-- A resource whose row is locked in the callers' own transactions (a row lock).  Made by
-- the first use, on its own, before anybody locks it, and never removed: a locking read
-- of an absent row would lock a gap.
CREATE TABLE IF NOT EXISTS row_lock (
    resource VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL PRIMARY KEY,
    created_at DATETIME(6) NOT NULL
) ENGINE = InnoDB;
