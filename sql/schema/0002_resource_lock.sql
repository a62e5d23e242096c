-- One row for each named resource that was ever locked: an account, a product, a nightly
-- job.  It is made by the first ask and stays when it is released, so that its fence goes
-- on rising and nobody ever waits for a gap.
--   status       L locked (perhaps by a dead holder), U unlocked
--   lease_until  the end of a lease that only its holder renews; NULL on a locked row: the
--                holder's session renews it, by its heartbeat and without a write here
--   free_at      nobody is granted the lock before, not even after an early release
CREATE TABLE IF NOT EXISTS resource_lock (
    resource VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL PRIMARY KEY,
    status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    -- what the last step was; 'by hand' when SQL was typed past the library
    step VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    thread_no UUID NOT NULL,
    log_no UUID NULL,
    session_id UUID NULL,
    token BINARY(16) NOT NULL,
    fence BIGINT UNSIGNED NOT NULL,
    rev BIGINT UNSIGNED NOT NULL,
    lease_until DATETIME(6) NULL,
    max_hold_until DATETIME(6) NULL,
    free_at DATETIME(6) NULL,
    -- for operators; of the last holder when unlocked
    payload VARBINARY(1024) NULL,
    remark VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    locked_at DATETIME(6) NOT NULL,
    created_at DATETIME(6) NOT NULL,
    updated_at DATETIME(6) NOT NULL,
    CONSTRAINT resource_is_l_or_u CHECK (status IN ('L', 'U')),
    CONSTRAINT locked_has_end CHECK (status = 'U' OR max_hold_until IS NOT NULL)
) ENGINE = InnoDB;

-- One row for each step of a resource, written by the triggers with their definer's
-- rights; no application account can write it.
CREATE TABLE IF NOT EXISTS resource_log (
    resource VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    rev BIGINT UNSIGNED NOT NULL,
    logged_at DATETIME(6) NOT NULL,
    step VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    thread_no UUID NOT NULL,
    log_no UUID NULL,
    session_id UUID NULL,
    token BINARY(16) NOT NULL,
    fence BIGINT UNSIGNED NOT NULL,
    lease_until DATETIME(6) NULL,
    max_hold_until DATETIME(6) NULL,
    free_at DATETIME(6) NULL,
    remark VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    account VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (resource, rev)
) ENGINE = InnoDB;
