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
-- holder, written by the triggers below with their definer's rights.
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

CREATE OR REPLACE TRIGGER resource_holder_inserted AFTER INSERT ON resource_holder
FOR EACH ROW
INSERT INTO resource_holder_log
VALUES (NEW.resource, NEW.slot, NEW.rev,
    SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
    NEW.kind, NEW.status, NEW.step, NEW.thread_no, NEW.log_no, NEW.session_id, NEW.token,
    NEW.fence, NEW.over_at, NEW.remark, NEW.actor, USER());

-- Every step of the library raises rev; whatever does not was typed by hand.
CREATE OR REPLACE TRIGGER resource_holder_updated BEFORE UPDATE ON resource_holder
FOR EACH ROW
BEGIN
    IF NOT (NEW.resource <=> OLD.resource AND NEW.slot <=> OLD.slot) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the name of a lock never changes';
    END IF;
    IF (NEW.rev > OLD.rev) IS NOT TRUE THEN
        SET NEW.rev = OLD.rev + 1, NEW.step = 'by hand';
    END IF;
END;

-- After the row was changed, so that the history holds what is there.
CREATE OR REPLACE TRIGGER resource_holder_logged AFTER UPDATE ON resource_holder
FOR EACH ROW
INSERT INTO resource_holder_log
VALUES (NEW.resource, NEW.slot, NEW.rev,
    SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
    NEW.kind, NEW.status, NEW.step, NEW.thread_no, NEW.log_no, NEW.session_id, NEW.token,
    NEW.fence, NEW.over_at, NEW.remark, NEW.actor, USER());

CREATE OR REPLACE TRIGGER resource_holder_deleted AFTER DELETE ON resource_holder
FOR EACH ROW
INSERT INTO resource_holder_log
VALUES (OLD.resource, OLD.slot, OLD.rev + 1,
    SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
    OLD.kind, OLD.status, 'deleted', OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token,
    OLD.fence, OLD.over_at, OLD.remark, OLD.actor, USER());

-- Whether a holder's step with this token was ever committed; the application's only
-- right on the log.
CREATE OR REPLACE FUNCTION tl_holder_token_seen(
    name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    number SMALLINT UNSIGNED, wanted BINARY(16))
RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN EXISTS (SELECT 1 FROM resource_holder_log
    WHERE resource = name AND slot = number AND token = wanted);

-- What a holder's row means now; a dead one is freed by the janitor, or by the first ask
-- that it stands in the way of.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW resource_holder_state AS
SELECT h.*, x.program, x.host, x.pid, UTC_TIMESTAMP(6) AS now_at,
    CASE
        WHEN h.status = 'F' THEN 'free'
        WHEN h.over_at <= UTC_TIMESTAMP(6)
            OR (h.by_session = 1 AND (x.session_id IS NULL OR x.ended_at IS NOT NULL))
            THEN 'dead'
        WHEN h.status = 'W' THEN 'waiting'
        WHEN h.status = 'D' THEN 'done'
        ELSE 'held'
    END AS state
FROM resource_holder h
LEFT JOIN tl_session x ON x.session_id = h.session_id;

-- A resource whose row is locked in the callers' own transactions (a row lock).  Made by
-- the first use, on its own, before anybody locks it, and never removed: a locking read
-- of an absent row would lock a gap.
CREATE TABLE IF NOT EXISTS row_lock (
    resource VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL PRIMARY KEY,
    created_at DATETIME(6) NOT NULL
) ENGINE = InnoDB;

UPDATE tl_schema SET version = GREATEST(version, 3) WHERE one = 1;
