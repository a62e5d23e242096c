-- What 'tradelock migrate' of schema 8 ran: tests bring a database from there to now.
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
-- a row that is gone.  The triggers below keep what a step replaces, with their definer's
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

-- An ending changes the row that was granted; a row that is gone is lost, not made.
CREATE OR REPLACE TRIGGER trade_lock_inserted AFTER INSERT ON trade_lock FOR EACH ROW
BEGIN
    IF NEW.step = _ascii 'end' THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644, MESSAGE_TEXT = 'no row to end';
    END IF;
END;

-- The library raises rev itself; SQL typed by hand does not, and is recorded all the same.
-- A statement that changes nothing (a refused ask) leaves rev alone and no trace.  A key never
-- changes: what happened under it would be under another.
CREATE OR REPLACE TRIGGER trade_lock_updated BEFORE UPDATE ON trade_lock FOR EACH ROW
BEGIN
    -- The library's own steps are through after one short question: each is prepared anew
    -- for every row.
    IF NEW.rev > OLD.rev AND NEW.serial_no = OLD.serial_no AND NEW.cust_no = OLD.cust_no
        AND NEW.op_code = OLD.op_code THEN
        SET NEW.logged_at = SYSDATE(6)
                + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
            NEW.account = USER();
    ELSE
        IF NOT (NEW.cust_no <=> OLD.cust_no AND NEW.serial_no <=> OLD.serial_no
            AND NEW.op_code <=> OLD.op_code) THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'the key of a trade never changes';
        END IF;
        -- NULL, which a server that is not strict takes for 0, is no higher rev.
        IF (NEW.rev > OLD.rev) IS NOT TRUE THEN
            IF NOT (NEW.rev <=> OLD.rev AND NEW.status <=> OLD.status
                AND NEW.token <=> OLD.token AND NEW.fence <=> OLD.fence
                AND NEW.session_id <=> OLD.session_id
                AND NEW.epoch <=> OLD.epoch AND NEW.attempts <=> OLD.attempts
                AND NEW.claims <=> OLD.claims AND NEW.sends <=> OLD.sends
                AND NEW.send_until <=> OLD.send_until AND NEW.parked <=> OLD.parked
                AND NEW.not_found_since <=> OLD.not_found_since
                AND NEW.seen_by_channel <=> OLD.seen_by_channel
                AND NEW.cancel_tried <=> OLD.cancel_tried
                AND NEW.success_epoch <=> OLD.success_epoch
                AND NEW.max_hold_until <=> OLD.max_hold_until
                AND NEW.next_run_at <=> OLD.next_run_at AND NEW.deadline_at <=> OLD.deadline_at
                AND NEW.conflict <=> OLD.conflict AND NEW.exclusive <=> OLD.exclusive
                AND NEW.repeatable <=> OLD.repeatable
                AND NEW.retryable <=> OLD.retryable AND NEW.proof <=> OLD.proof
                AND NEW.fingerprint <=> OLD.fingerprint AND NEW.channel <=> OLD.channel
                AND NEW.channel_key <=> OLD.channel_key AND NEW.channel_ref <=> OLD.channel_ref
                AND NEW.payload <=> OLD.payload AND NEW.result <=> OLD.result
                AND NEW.lane <=> OLD.lane AND NEW.step <=> OLD.step
                AND NEW.thread_no <=> OLD.thread_no AND NEW.log_no <=> OLD.log_no
                AND NEW.remark <=> OLD.remark AND NEW.actor <=> OLD.actor
                AND NEW.created_at <=> OLD.created_at AND NEW.updated_at <=> OLD.updated_at
                AND NEW.logged_at <=> OLD.logged_at AND NEW.account <=> OLD.account
                AND NEW.first_rev <=> OLD.first_rev
                AND NEW.first_logged_at <=> OLD.first_logged_at
                AND NEW.first_account <=> OLD.first_account
                AND NEW.first_thread_no <=> OLD.first_thread_no
                AND NEW.first_log_no <=> OLD.first_log_no
                AND NEW.first_session_id <=> OLD.first_session_id
                AND NEW.first_token <=> OLD.first_token
                AND NEW.first_sends <=> OLD.first_sends
                AND NEW.first_max_hold_until <=> OLD.first_max_hold_until
                AND NEW.first_next_run_at <=> OLD.first_next_run_at
                AND NEW.first_channel_key <=> OLD.first_channel_key) THEN
                SET NEW.rev = OLD.rev + 1, NEW.step = 'by hand';
            END IF;
        END IF;
        IF NEW.rev > OLD.rev THEN
            SET NEW.logged_at = SYSDATE(6)
                    + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
                NEW.account = USER();
        END IF;
    END IF;
END;
-- What was is kept once the change is there: an UPDATE IGNORE that a CHECK refuses leaves
-- nothing behind.  After one that a unique key refuses the server comes here all the same;
-- then the step is kept early, and not in the way of the next change.  Another step of that
-- revision (NULL) is refused.  A first step stays in the row.
CREATE OR REPLACE TRIGGER trade_lock_kept AFTER UPDATE ON trade_lock FOR EACH ROW
BEGIN
    IF NEW.rev <> OLD.rev AND NOT (OLD.rev <=> OLD.first_rev) THEN
        INSERT INTO trade_lock_past
        VALUES (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.rev, OLD.logged_at, OLD.step,
            OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token, OLD.fence,
            OLD.epoch, OLD.attempts, OLD.claims, OLD.sends, OLD.send_until,
            OLD.max_hold_until, OLD.next_run_at, OLD.parked, OLD.conflict, OLD.proof,
            OLD.channel_key, OLD.channel_ref, OLD.remark, OLD.actor, OLD.account)
        ON DUPLICATE KEY UPDATE rev = IF(token = VALUES(token), rev, NULL);
    END IF;
END;
-- Removing a row is a step too, the last of a life.  Purging takes the history away
-- afterwards, with the rows.
CREATE OR REPLACE TRIGGER trade_lock_deleted AFTER DELETE ON trade_lock FOR EACH ROW
BEGIN
    IF OLD.first_rev < OLD.rev THEN
        INSERT INTO trade_lock_past
        VALUES (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.first_rev, OLD.first_logged_at,
                'ask', 'P', OLD.first_thread_no, OLD.first_log_no, OLD.first_session_id,
                OLD.first_token, OLD.first_rev, 1, 0, 0, OLD.first_sends,
                IF(OLD.first_sends > 0, OLD.first_max_hold_until, NULL),
                OLD.first_max_hold_until, OLD.first_next_run_at, NULL, 0, '-',
                OLD.first_channel_key, NULL, NULL, NULL, OLD.first_account);
    END IF;
    INSERT INTO trade_lock_past
    VALUES (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.rev, OLD.logged_at, OLD.step,
        OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token, OLD.fence,
        OLD.epoch, OLD.attempts, OLD.claims, OLD.sends, OLD.send_until,
        OLD.max_hold_until, OLD.next_run_at, OLD.parked, OLD.conflict, OLD.proof,
        OLD.channel_key, OLD.channel_ref, OLD.remark, OLD.actor, OLD.account),
        (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.rev + 1,
            SYSDATE(6)
                + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
            'deleted', OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token,
            OLD.fence, OLD.epoch, OLD.attempts, OLD.claims, OLD.sends, OLD.send_until,
            OLD.max_hold_until, OLD.next_run_at, OLD.parked, OLD.conflict, OLD.proof,
            OLD.channel_key, OLD.channel_ref, OLD.remark, OLD.actor, USER())
    ON DUPLICATE KEY UPDATE rev = IF(token = VALUES(token), rev, NULL);
END;

-- The first step of each row that has had another since.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW trade_lock_first AS
SELECT cust_no, serial_no, op_code, first_rev AS rev, first_logged_at AS logged_at,
    _ascii 'ask' AS step, _ascii 'P' AS status, first_thread_no AS thread_no,
    first_log_no AS log_no, first_session_id AS session_id,
    first_token AS token, first_rev AS fence, 1 AS epoch, 0 AS attempts, 0 AS claims,
    first_sends AS sends, IF(first_sends > 0, first_max_hold_until, NULL) AS send_until,
    first_max_hold_until AS max_hold_until, first_next_run_at AS next_run_at,
    NULL AS parked, 0 AS conflict,
    _ascii '-' AS proof, first_channel_key AS channel_key,
    NULL AS channel_ref, NULL AS remark, NULL AS actor, first_account AS account
FROM trade_lock WHERE first_rev < rev;

-- Every committed step of every row: what was between, how the rows began, and what they
-- are.  Whoever reads it by cust_no and serial_no reads the few rows of a trade.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW trade_lock_log AS
SELECT cust_no, serial_no, op_code, rev, logged_at, step, status, thread_no, log_no,
    session_id, token, fence, epoch, attempts, claims, sends, send_until, max_hold_until,
    next_run_at, parked, conflict, proof, channel_key, channel_ref, remark, actor, account
FROM trade_lock_past
UNION ALL
SELECT cust_no, serial_no, op_code, rev, logged_at, step, status, thread_no, log_no,
    session_id, token, fence, epoch, attempts, claims, sends, send_until, max_hold_until,
    next_run_at, parked, conflict, proof, channel_key, channel_ref, remark, actor, account
FROM trade_lock_first
UNION ALL
SELECT cust_no, serial_no, op_code, rev, logged_at, step, status, thread_no, log_no,
    session_id, token, fence, epoch, attempts, claims, sends, send_until, max_hold_until,
    next_run_at, parked, conflict, proof, channel_key, channel_ref, remark, actor, account
FROM trade_lock;

-- Whether a step with this token was ever committed.  The application has no other right
-- on what was.  First what the row is, then what it was: a step goes from there to here.
CREATE OR REPLACE FUNCTION tl_token_seen(
    cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    wanted BINARY(16)) RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN EXISTS (SELECT 1 FROM trade_lock
        WHERE cust_no = cust AND serial_no = serial AND op_code = op
            AND (token = wanted OR (first_token = wanted AND first_rev < rev)))
    OR EXISTS (SELECT 1 FROM trade_lock_past
        WHERE cust_no = cust AND serial_no = serial AND op_code = op AND token = wanted);

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

-- What every row means now, in one place: the library, the command and a person with a
-- SQL prompt read the same words.
--   alive: the holder's session lives and its max_hold is not over
--   state: of a sync row live, working, in doubt, queued, parked, failed,
--          succeeded;
--          of a retry row working, waiting, parked, closed, succeeded
-- A retry row of an older epoch counts as absent, and so does a standalone one.  The session
-- and the next moment of a finished trade are its last ones; nobody holds it.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW trade_lock_state AS
SELECT t.*,
    x.program, x.host, x.pid,
    r.status AS retry_status, r.epoch AS retry_epoch, r.fence AS retry_fence,
    r.rev AS retry_rev, r.attempts AS retry_attempts, r.claims AS retry_claims,
    r.parked AS retry_parked, r.next_run_at AS retry_next_run_at,
    r.updated_at AS retry_updated_at, r.remark AS retry_remark,
    UTC_TIMESTAMP(6) AS now_at,
    (t.status = 'P' AND x.ended_at IS NULL AND x.session_id IS NOT NULL
        AND t.max_hold_until > UTC_TIMESTAMP(6)) AS alive,
    CASE
        WHEN t.lane = 'R' AND t.status = 'P' THEN 'working'
        WHEN t.lane = 'R' AND t.status = 'F' AND t.parked IS NOT NULL THEN 'parked'
        WHEN t.lane = 'R' AND t.status = 'F' AND t.next_run_at IS NOT NULL THEN 'waiting'
        WHEN t.lane = 'R' AND t.status = 'F' THEN 'closed'
        WHEN t.status = 'Y' THEN 'succeeded'
        WHEN t.status = 'F' THEN 'failed'
        WHEN x.ended_at IS NULL AND x.session_id IS NOT NULL
            AND t.max_hold_until > UTC_TIMESTAMP(6)
            THEN IF(r.status = 'P' AND r.epoch = t.epoch, 'working', 'live')
        WHEN r.status = 'F' AND r.epoch = t.epoch AND r.parked IS NOT NULL THEN 'parked'
        WHEN t.sends > 0 THEN 'in doubt'
        ELSE 'queued'
    END AS state
FROM trade_lock t
LEFT JOIN tl_session x ON x.session_id = t.session_id AND t.status = 'P'
LEFT JOIN trade_lock r ON t.lane = 'S' AND r.cust_no = t.cust_no
    AND r.repeatable = 0 AND r.serial_no = t.serial_no
    AND r.op_code = CONCAT(t.op_code, _ascii '_RETRY' COLLATE ascii_nopad_bin);

INSERT INTO tl_schema (one, version, oldest_client) VALUES (1, 1, 1)
ON DUPLICATE KEY UPDATE version = GREATEST(version, 1);
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

-- One row for each step of a resource, written by the triggers below with their definer's
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

-- A release in a group (resource_group.sql) changes the row that was granted; a row that
-- is gone is lost, not made.  After the INSERT, since a trigger before it is also run for
-- every row that is there already.
CREATE OR REPLACE TRIGGER resource_lock_inserted AFTER INSERT ON resource_lock FOR EACH ROW
BEGIN
    IF NEW.step = _ascii 'release' THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644, MESSAGE_TEXT = 'no row to unlock';
    END IF;
    INSERT INTO resource_log
    VALUES (NEW.resource, NEW.rev,
        SYSDATE(6)
            + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
        NEW.step, NEW.status, NEW.thread_no, NEW.log_no, NEW.session_id, NEW.token,
        NEW.fence, NEW.lease_until, NEW.max_hold_until, NEW.free_at, NEW.remark,
        NEW.actor, USER());
END;

-- A refused ask changes nothing: rev stays, and there is no trace.  Where rev was counted by
-- hand, down or to nothing, it is counted here instead.
CREATE OR REPLACE TRIGGER resource_lock_updated BEFORE UPDATE ON resource_lock FOR EACH ROW
BEGIN
    IF NOT (NEW.resource <=> OLD.resource) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the name of a lock never changes';
    END IF;
    -- Two questions one in the other, since the long one is prepared anew for every row.
    IF (NEW.rev > OLD.rev) IS NOT TRUE THEN
        IF NOT (NEW.rev <=> OLD.rev
            AND NEW.status <=> OLD.status AND NEW.step <=> OLD.step
            AND NEW.thread_no <=> OLD.thread_no AND NEW.log_no <=> OLD.log_no
            AND NEW.session_id <=> OLD.session_id AND NEW.token <=> OLD.token
            AND NEW.fence <=> OLD.fence AND NEW.lease_until <=> OLD.lease_until
            AND NEW.max_hold_until <=> OLD.max_hold_until AND NEW.free_at <=> OLD.free_at
            AND NEW.payload <=> OLD.payload AND NEW.remark <=> OLD.remark
            AND NEW.actor <=> OLD.actor AND NEW.locked_at <=> OLD.locked_at
            AND NEW.created_at <=> OLD.created_at AND NEW.updated_at <=> OLD.updated_at) THEN
            SET NEW.rev = OLD.rev + 1, NEW.step = 'by hand';
        END IF;
    END IF;
END;

-- After the row was changed, so that the history holds what is there: what the trigger above
-- is given may still be cut or refused.
CREATE OR REPLACE TRIGGER resource_lock_logged AFTER UPDATE ON resource_lock FOR EACH ROW
BEGIN
    IF NEW.rev <> OLD.rev THEN
        INSERT INTO resource_log
        VALUES (NEW.resource, NEW.rev,
            SYSDATE(6)
                + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
            NEW.step, NEW.status, NEW.thread_no, NEW.log_no, NEW.session_id, NEW.token,
            NEW.fence, NEW.lease_until, NEW.max_hold_until, NEW.free_at, NEW.remark,
            NEW.actor, USER());
    END IF;
END;

CREATE OR REPLACE TRIGGER resource_lock_deleted AFTER DELETE ON resource_lock FOR EACH ROW
INSERT INTO resource_log
VALUES (OLD.resource, OLD.rev + 1,
    SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
    'deleted', OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token, OLD.fence,
    OLD.lease_until, OLD.max_hold_until, OLD.free_at, OLD.remark, OLD.actor, USER());

-- Whether a step with this token was ever committed; the application's only right on the
-- log.
CREATE OR REPLACE FUNCTION tl_resource_token_seen(
    name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    wanted BINARY(16)) RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN EXISTS (SELECT 1 FROM resource_log WHERE resource = name AND token = wanted);

-- What a row means now.
--   held     its holder lives: by its session, or by its own lease; and max_hold is not over
--   kept     nobody holds it, and its minimum hold is not over
--   expired  its holder is dead or too late; whoever asks next takes it over
--   free
CREATE OR REPLACE SQL SECURITY INVOKER VIEW resource_lock_state AS
SELECT r.*, x.program, x.host, x.pid, UTC_TIMESTAMP(6) AS now_at,
    CASE
        WHEN r.status = 'L' AND r.max_hold_until > UTC_TIMESTAMP(6)
            AND IF(r.lease_until IS NULL, x.session_id IS NOT NULL AND x.ended_at IS NULL,
                r.lease_until > UTC_TIMESTAMP(6)) THEN 'held'
        WHEN r.free_at > UTC_TIMESTAMP(6) THEN 'kept'
        WHEN r.status = 'L' THEN 'expired'
        ELSE 'free'
    END AS state
FROM resource_lock r
LEFT JOIN tl_session x ON x.session_id = r.session_id;

UPDATE tl_schema SET version = GREATEST(version, 2) WHERE one = 1;
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
-- Purging: no account of ours may remove a row, so what may be removed is decided here,
-- with the rights of the account that ran the migration.
--
-- A finished trade goes with everything that belongs to it: both rows, their history, the
-- evidence and what operators decided, in one transaction.  Never one in process, never one
-- in conflict, never one that changed, or could still be sent or tried anew, within the time
-- given, and never within a day.  The next life of a key begins with the server's
-- microseconds, above every fence that the purged one had.
--
-- One call looks at a page of rows in the order of the key and says in `purged`: how many
-- trades it removed, how many rows it looked at, and the last one's key.  Rows that somebody
-- is at are stepped over.
CREATE OR REPLACE PROCEDURE tl_purge(IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe, in_use INT UNSIGNED DEFAULT 0;
    DECLARE finished TINYINT DEFAULT 0;
    DECLARE cut DATETIME(6) DEFAULT UTC_TIMESTAMP(6) - INTERVAL older_ms * 1000 MICROSECOND;
    DECLARE cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin DEFAULT after_cust;
    DECLARE serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT after_serial;
    DECLARE op, other VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT after_op;
    DECLARE page CURSOR FOR
        SELECT cust_no, serial_no, op_code FROM trade_lock
        WHERE cust_no >= after_cust AND (cust_no > after_cust OR (cust_no = after_cust
            AND (serial_no > after_serial
                OR (serial_no = after_serial AND op_code > after_op))))
        ORDER BY cust_no, serial_no, op_code
        LIMIT most;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET finished = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    IF older_ms < 86400000 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'nothing younger than a day is purged';
    END IF;
    START TRANSACTION;
    OPEN page;
    walk: LOOP
        FETCH page INTO cust, serial, op;
        IF finished THEN
            LEAVE walk;
        END IF;
        SET seen = seen + 1;
        SET other = CONCAT(op, _ascii '_RETRY');
        -- The row that decides: a sync row, or a retry row that stands alone.
        SELECT COUNT(*) INTO ripe FROM trade_lock t
        WHERE t.cust_no = cust AND t.serial_no = serial AND t.op_code = op
            AND t.status <> 'P' AND t.conflict = 0 AND t.parked IS NULL
            AND (t.next_run_at IS NULL OR t.lane = 'S') AND t.updated_at < cut
            AND (t.send_until IS NULL OR t.send_until < cut)
            AND (t.deadline_at IS NULL OR t.deadline_at < UTC_TIMESTAMP(6))
        FOR UPDATE SKIP LOCKED;
        IF ripe = 1 AND RIGHT(op, 6) = _ascii '_RETRY' THEN
            SELECT COUNT(*) INTO in_use FROM trade_lock t
            WHERE t.cust_no = cust AND t.serial_no = serial
                AND t.op_code = LEFT(op, CHAR_LENGTH(op) - 6);
        ELSEIF ripe = 1 THEN
            SELECT COUNT(*) INTO in_use FROM trade_lock t
            WHERE t.cust_no = cust AND t.serial_no = serial AND t.op_code = other
                AND (t.status = 'P' OR t.parked IS NOT NULL OR t.next_run_at IS NOT NULL
                    OR t.updated_at >= cut)
            FOR UPDATE;
        END IF;
        IF ripe = 1 AND in_use = 0 THEN
            DELETE FROM trade_lock
            WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
            DELETE FROM trade_lock_past
            WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
            DELETE FROM trade_evidence
            WHERE cust_no = cust AND serial_no = serial AND op_code = op;
            DELETE FROM trade_resolution
            WHERE cust_no = cust AND serial_no = serial AND op_code = op;
            SET removed = removed + 1;
        END IF;
    END LOOP;
    CLOSE page;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, cust, serial, op);
END;

UPDATE tl_schema SET version = GREATEST(version, 5) WHERE one = 1;
-- Purging the rows of names that nobody uses any more, as 0005 purges trades: in pages, in
-- the order of the names, never within a day, and stepping over rows that somebody is at.
-- A name comes back with the server's microseconds, above every fence that it had.
--
-- A mutex: unlocked, or its holder's last moment is over, and nothing happened for so
-- long.  Whoever asks at the same moment meets the row's lock, and answers busy.
CREATE OR REPLACE PROCEDURE tl_purge_resources(IN older_ms BIGINT UNSIGNED,
    IN most INT UNSIGNED,
    IN after_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe INT UNSIGNED DEFAULT 0;
    DECLARE finished TINYINT DEFAULT 0;
    DECLARE cut DATETIME(6) DEFAULT UTC_TIMESTAMP(6) - INTERVAL older_ms * 1000 MICROSECOND;
    DECLARE name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT after_name;
    DECLARE page CURSOR FOR
        SELECT r.resource FROM resource_lock r
        WHERE r.resource > after_name ORDER BY r.resource LIMIT most;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET finished = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    IF older_ms < 86400000 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'nothing younger than a day is purged';
    END IF;
    START TRANSACTION;
    OPEN page;
    walk: LOOP
        FETCH page INTO name;
        IF finished THEN
            LEAVE walk;
        END IF;
        SET seen = seen + 1;
        SELECT COUNT(*) INTO ripe FROM resource_lock r
        WHERE r.resource = name AND r.updated_at < cut
            AND (r.status = 'U' OR r.max_hold_until < cut)
            AND (r.free_at IS NULL OR r.free_at < cut)
        FOR UPDATE SKIP LOCKED;
        IF ripe = 1 THEN
            DELETE FROM resource_lock WHERE resource = name;
            DELETE FROM resource_log WHERE resource = name;
            SET removed = removed + 1;
        END IF;
    END LOOP;
    CLOSE page;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, name);
END;

-- A read-write lock: the gate, which nobody is at, and holders' rows that are all free (the
-- dead are the janitor's) since so long.  Behind the gate nobody is granted anything
-- meanwhile; an ask that waits for it finds it gone, and makes it anew.
CREATE OR REPLACE PROCEDURE tl_purge_rw(IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe, in_use INT UNSIGNED DEFAULT 0;
    DECLARE finished TINYINT DEFAULT 0;
    DECLARE cut DATETIME(6) DEFAULT UTC_TIMESTAMP(6) - INTERVAL older_ms * 1000 MICROSECOND;
    DECLARE name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT after_name;
    DECLARE page CURSOR FOR
        SELECT g.resource FROM rw_lock g
        WHERE g.resource > after_name ORDER BY g.resource LIMIT most;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET finished = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    IF older_ms < 86400000 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'nothing younger than a day is purged';
    END IF;
    START TRANSACTION;
    OPEN page;
    walk: LOOP
        FETCH page INTO name;
        IF finished THEN
            LEAVE walk;
        END IF;
        SET seen = seen + 1;
        SELECT COUNT(*) INTO ripe FROM rw_lock g
        WHERE g.resource = name AND g.created_at < cut
        FOR UPDATE SKIP LOCKED;
        IF ripe = 1 THEN
            SELECT COUNT(*) INTO in_use FROM resource_holder h
            WHERE h.resource = name AND (h.status <> 'F' OR h.updated_at >= cut);
        END IF;
        IF ripe = 1 AND in_use = 0 THEN
            DELETE FROM resource_holder WHERE resource = name;
            DELETE FROM resource_holder_log WHERE resource = name;
            DELETE FROM rw_lock WHERE resource = name;
            SET removed = removed + 1;
        END IF;
    END LOOP;
    CLOSE page;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, name);
END;

UPDATE tl_schema SET version = GREATEST(version, 6) WHERE one = 1;
-- Sessions that are over: a process leaves one row for each time that it ran.
--
-- A session goes when it has ended, and was swept, before the time given: what it held in
-- the retry lane's care was opened by then.  Rows that still name it (a mutex nobody has
-- taken over since, or what a dead process commits late) find no session, which means the
-- same as an ended one.  So nothing has to be searched for holders.
CREATE OR REPLACE PROCEDURE tl_purge_sessions(IN older_ms BIGINT UNSIGNED,
    IN most INT UNSIGNED, OUT purged INT UNSIGNED)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE cut DATETIME(6) DEFAULT UTC_TIMESTAMP(6) - INTERVAL older_ms * 1000 MICROSECOND;

    IF older_ms < 86400000 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'nothing younger than a day is purged';
    END IF;
    DELETE FROM tl_session
    WHERE swept_at < cut AND ended_at < cut
    ORDER BY swept_at, ended_at
    LIMIT most;
    SET purged = ROW_COUNT();
END;

UPDATE tl_schema SET version = GREATEST(version, 7) WHERE one = 1;
-- Which triggers, functions, procedures and views there are, as "kind name" in lines.  An
-- account sees of information_schema only what it has rights on; the doctor of a service
-- must know of all.  By event_object_schema, since the server looks for triggers by their
-- table's schema: by any other condition it opens every table of every database, and trips
-- over one that is just being altered.
CREATE OR REPLACE FUNCTION tl_parts()
RETURNS TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
READS SQL DATA SQL SECURITY DEFINER
RETURN CONCAT_WS('\n',
    (SELECT GROUP_CONCAT('trigger ', trigger_name SEPARATOR '\n')
        FROM information_schema.triggers WHERE event_object_schema = DATABASE()),
    (SELECT GROUP_CONCAT(LOWER(routine_type), ' ', routine_name SEPARATOR '\n')
        FROM information_schema.routines WHERE routine_schema = DATABASE()),
    (SELECT GROUP_CONCAT('view ', table_name SEPARATOR '\n')
        FROM information_schema.views WHERE table_schema = DATABASE()));

UPDATE tl_schema SET version = GREATEST(version, 8) WHERE one = 1;
