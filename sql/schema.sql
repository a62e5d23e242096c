-- The schema, version 1.  Every statement can be run again, and none is changed once it was released:
-- what comes later is a migration (README.md).

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
    -- For how long a send of this epoch may at most be under way: a duration, which no clock
    -- changes.  Nobody but the server fills it in: with a new row this default, later the trigger
    -- trade_lock_updated.
    longest_hold_ms INT UNSIGNED NULL DEFAULT (LEAST(604800000, GREATEST(0,
        (TIMESTAMPDIFF(MICROSECOND, created_at, COALESCE(max_hold_until, send_until)) + 999)
            DIV 1000))),
    not_found_since DATETIME(6) NULL,
    -- the channel has shown that it knows the payment: a later "not found" contradicts it
    seen_by_channel TINYINT NOT NULL DEFAULT 0,
    -- a cancel was tried in this epoch: nothing is sent again
    cancel_tried TINYINT NOT NULL DEFAULT 0,
    -- the epoch for which evidence says that money moved; 0: only that a payment failed for good
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
    -- What a request said of itself: how much money, in minor units of which currency; the batch it
    -- belongs to; the W3C trace context under which it was made; what people call it, such as an
    -- order's number.  The row keeps what its first ask said; NULL where it said nothing.
    amount_minor BIGINT NULL,
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NULL,
    batch VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL,
    traceparent CHAR(55) CHARACTER SET ascii COLLATE ascii_bin NULL,
    label VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    result BLOB NULL,
    remark VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    -- The revision at which the contents were blanked (tl_purge_trade): payload, result, traceparent,
    -- label and remark.  No role may write it, so nobody else blanks without a step.
    blanked_rev BIGINT UNSIGNED NULL,
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
    -- Lists: by the moment at which a row was made, as reports; by serial number, of trades in
    -- conflict and of parked ones; by batch; by the channel's reference.  A trade that is asked for
    -- and ended costs each of them one entry, at its end where serial numbers rise; a trade that
    -- names no batch or reference stands in one place.
    KEY made (created_at),
    KEY serial (conflict, parked, serial_no),
    KEY batch (batch, serial_no),
    KEY channel_ref (channel_ref, serial_no),
    -- Searches: by what people call it, its trace, and its amount, the latest last.
    KEY label (label, serial_no),
    KEY trace (traceparent, serial_no),
    KEY amount (currency, amount_minor, created_at),
    CONSTRAINT status_is_p_f_or_y CHECK (status IN ('P', 'F', 'Y')),
    CONSTRAINT lane_is_s_or_r CHECK (lane IN ('S', 'R')),
    -- terminals show it as it is
    CONSTRAINT currency_is_letters CHECK (
        SUBSTR(currency, 1, 1) BETWEEN _ascii 'A' AND _ascii 'Z'
        AND SUBSTR(currency, 2, 1) BETWEEN _ascii 'A' AND _ascii 'Z'
        AND SUBSTR(currency, 3, 1) BETWEEN _ascii 'A' AND _ascii 'Z'),
    CONSTRAINT failure_has_proof CHECK (lane = 'R' OR status <> 'F' OR proof <> '-')
) ENGINE = InnoDB;

-- From where on a sync row of an operation may be in process: each one whose next_run_at
-- lies before the mark has ended, or has been opened.  Janitors move it, at most up to now
-- (low_water_clear); the next_run_at that a row gets lies five seconds at least behind
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
    longest_hold_ms INT UNSIGNED NULL,
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
    -- what was moved, where that was told
    amount_minor BIGINT NULL,
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NULL,
    -- it contradicted the trade's row when it was filed (sql/object/evidence.sql)
    contradicts TINYINT NOT NULL DEFAULT 0,
    channel_ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    source VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    remark VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    thread_no UUID NULL,
    account VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    filed_at DATETIME(6) NOT NULL,
    KEY trade (cust_no, serial_no, op_code, epoch),
    -- terminals show it as it is
    CONSTRAINT currency_is_letters CHECK (
        SUBSTR(currency, 1, 1) BETWEEN _ascii 'A' AND _ascii 'Z'
        AND SUBSTR(currency, 2, 1) BETWEEN _ascii 'A' AND _ascii 'Z'
        AND SUBSTR(currency, 3, 1) BETWEEN _ascii 'A' AND _ascii 'Z'),
    CONSTRAINT outcome_is_known CHECK (outcome IN
        ('SUCCEEDED', 'FAILED', 'DECLINED', 'ACCEPTED', 'PENDING', 'UNKNOWN', 'NOT_SENT'))
) ENGINE = InnoDB;

-- What two operators decided together: a row for the proposal, a row for its confirmation,
-- by two accounts, about one revision of the row.  Nobody of ours may write the column
-- `account`: it is the server's word for who is connected (CURRENT_USER() here is the
-- account of whoever inserts, not of a definer), so that nobody can pass for another.
--   verdict  C the conflict is cleared, Y the failure was paid after all, F the trade in
--            doubt failed
--   part     1 proposed, 2 confirmed; 3 over: a worker did not carry it out, since the channel said
--            that the payment lives, and nobody ends the trade by it
--   although_pending   said by whoever confirms: to be booked although the channel calls it pending
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
    although_pending TINYINT NOT NULL DEFAULT 0,
    log_no UUID NULL,
    -- 1 on the third part, which a procedure writes; no role may write this column
    worker TINYINT NOT NULL DEFAULT 0,
    -- the row of an act of many trades that this half is; NULL: it is an act by itself
    act_no BIGINT UNSIGNED NULL,
    act_row BIGINT UNSIGNED NULL,
    PRIMARY KEY (cust_no, serial_no, op_code, rev, verdict, part),
    KEY decided (decided_at),
    KEY alone (act_no, decided_at),
    CONSTRAINT verdict_is_c_y_or_f CHECK (verdict IN ('C', 'Y', 'F')),
    CONSTRAINT part_is_1_2_or_3 CHECK (part IN (1, 2, 3))
) ENGINE = InnoDB;

-- What an audit found and two accounts have dealt with, each with a reason: a row for who
-- proposes to close it, a row for who confirms.  It is bound to the finding itself, the
-- SHA-256 of rule, trade, revision and sentence: another revision or other facts are another
-- finding, which is open.  Append only; who and when are the server's to say.
CREATE TABLE IF NOT EXISTS audit_closing (
    finding BINARY(32) NOT NULL,
    part TINYINT UNSIGNED NOT NULL,
    rule VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    -- of the row or the step; 0: there is none
    rev BIGINT UNSIGNED NOT NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    thread_no UUID NOT NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
        DEFAULT (CURRENT_USER()),
    closed_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    PRIMARY KEY (finding, part),
    KEY closed (closed_at),
    KEY trade (cust_no, serial_no, op_code),
    CONSTRAINT closing_is_1_or_2 CHECK (part IN (1, 2))
) ENGINE = InnoDB;

-- What operators decided about channels, as it is now: one row for each channel and operation that
-- a workflow has registered, and one with op_code '' for a channel that was paused as a whole.
-- Every process reads the rows that are paused after each of its heartbeats.
--   decided_at, reason, actor, account   of the last decision; NULL: there was none.  The account
--                                        is the server's word for who it was
CREATE TABLE IF NOT EXISTS trade_channel (
    channel VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    paused TINYINT NOT NULL DEFAULT 0,
    decided_at DATETIME(6) NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    -- what is promised of it (tl_promises of layer.h, as text): by all sessions that live and have
    -- registered it, and by those that sent what is in process still
    contract VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL,
    PRIMARY KEY (channel, op_code),
    KEY paused (paused),
    CONSTRAINT a_pause_has_a_reason CHECK (paused = 0 OR (decided_at IS NOT NULL
        AND reason IS NOT NULL AND actor IS NOT NULL AND account IS NOT NULL))
) ENGINE = InnoDB;

-- Which sessions have registered a channel.  Those that ended count for nothing.
CREATE TABLE IF NOT EXISTS tl_session_channel (
    channel VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    session_id UUID NOT NULL,
    PRIMARY KEY (channel, op_code, session_id)
) ENGINE = InnoDB;

-- How much operators let through a channel, for one operation or, with op_code '', for all of its
-- operations together.  Every process reads the rows after each of its heartbeats.
--   sends        at most so many at a time; NULL: any number
--   per_second   at most so many a second; NULL: any number
--   next_at      from when on the next send may begin; the sends before it are given away
--   decided_at, reason, actor, account   of the last decision.  The account is the server's word
--                                        for who it was
CREATE TABLE IF NOT EXISTS trade_channel_limit (
    channel VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    sends INT UNSIGNED NULL,
    per_second INT UNSIGNED NULL,
    next_at DATETIME(6) NULL,
    decided_at DATETIME(6) NOT NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (channel, op_code),
    CONSTRAINT a_limit_lets_something_through CHECK (COALESCE(sends, 1) BETWEEN 1 AND 1000000
        AND COALESCE(per_second, 1) BETWEEN 1 AND 100000)
) ENGINE = InnoDB;

-- How many of the sends at a time a session has for itself.
--   permits   so many at most are under way
--   wanted    so many it could use now
--   hold_ms   none of its sends is under way for longer
CREATE TABLE IF NOT EXISTS trade_channel_permit (
    channel VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    session_id UUID NOT NULL,
    permits INT UNSIGNED NOT NULL,
    wanted INT UNSIGNED NOT NULL,
    hold_ms BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (channel, op_code, session_id)
) ENGINE = InnoDB;

-- The circuit breakers of channels, for one operation or, with op_code '', for all of its operations
-- together.  Every process reads the rows after each of its heartbeats.
--   unknowns      opens after so many sends in a row whose outcome is unknown; NULL: no breaker
--   share         opens also if so many per cent of a window's sends are unknown, and as many as
--                 unknowns; NULL: no such share
--   window_s      how long a window is
--   probe_s       while it is open, how long after one probe another one begins
--   era           another one with each decision and each opening: what was counted before is void
--   opened        how often it has opened
--   opened_at     since when it is open; NULL: closed
--   in_a_row      so many unknown outcomes were told in a row
--   window_at, window_sends, window_unknowns   since when the window is, and what was told in it;
--                                              while it is open, when the last probe began, and 1
--                                              if that goes on
--   probe_no      the number of the last probe
--   next_at       no probe begins before; the one under way is over by then
--   hold_ms       how long the last probe may be under way
--   decided_at, reason, actor, account   of the last decision.  The account is the server's word
--                                        for who it was
CREATE TABLE IF NOT EXISTS trade_channel_breaker (
    channel VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    unknowns INT UNSIGNED NULL,
    share INT UNSIGNED NULL,
    window_s INT UNSIGNED NULL,
    probe_s INT UNSIGNED NOT NULL DEFAULT 10,
    era BIGINT UNSIGNED NOT NULL DEFAULT 0,
    opened BIGINT UNSIGNED NOT NULL DEFAULT 0,
    opened_at DATETIME(6) NULL,
    in_a_row BIGINT UNSIGNED NOT NULL DEFAULT 0,
    window_at DATETIME(6) NULL,
    window_sends BIGINT UNSIGNED NOT NULL DEFAULT 0,
    window_unknowns BIGINT UNSIGNED NOT NULL DEFAULT 0,
    probe_no BIGINT UNSIGNED NOT NULL DEFAULT 0,
    next_at DATETIME(6) NULL,
    hold_ms BIGINT UNSIGNED NOT NULL DEFAULT 0,
    decided_at DATETIME(6) NOT NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (channel, op_code),
    CONSTRAINT a_breaker_can_open_and_close CHECK (COALESCE(unknowns, 1) BETWEEN 1 AND 1000000
        AND COALESCE(share, 1) BETWEEN 1 AND 100 AND COALESCE(window_s, 1) BETWEEN 1 AND 86400
        AND (share IS NULL) = (window_s IS NULL) AND probe_s BETWEEN 1 AND 86400)
) ENGINE = InnoDB;

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

-- One row for each running process; renewed by one statement whatever it holds.
CREATE TABLE IF NOT EXISTS tl_session (
    session_id UUID NOT NULL PRIMARY KEY,
    program VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    host VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    pid INT UNSIGNED NOT NULL,
    operations VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    connection_name UUID NOT NULL,
    beat BIGINT UNSIGNED NOT NULL DEFAULT 0,
    -- Beats on a server that may yet be promoted, while it waits there.  They raise no beat: that
    -- number tells which of its commits came over.
    waits BIGINT UNSIGNED NOT NULL DEFAULT 0,
    timeout_ms INT UNSIGNED NOT NULL,
    started_at DATETIME(6) NOT NULL,
    alive_until DATETIME(6) NOT NULL,
    -- set once, by the owner or by an observer; committed before any of its locks is touched
    ended_at DATETIME(6) NULL,
    ended_by UUID NULL,
    -- Where it was ended; '': by itself, when it knew of no commit that a server could lack, or
    -- never lived under this name.  And the number of the last restore that was accepted on that
    -- server then: who was ended before another server was accepted was told of nothing since
    -- (object/restore.sql).
    ended_on VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    ended_no BIGINT UNSIGNED NULL,
    -- the owner ended it, and left no trade in process
    settled TINYINT NOT NULL DEFAULT 0,
    -- every lane of it that was in process has been opened
    swept_at DATETIME(6) NULL,
    -- How it knew the server's clock when it last looked, so that the next process on the same boot of
    -- the same machine sees a clock that was set while nobody lived.  boot_id is of that machine's
    -- kernel, and the next three are by its CLOCK_BOOTTIME: when it looked, and between which bounds
    -- the server's clock was ahead then.
    boot_id UUID NULL,
    clock_us BIGINT NULL,
    clock_least_us BIGINT NULL,
    clock_most_us BIGINT NULL,
    -- the jumps of the clock that were on record by then
    clock_steps INT UNSIGNED NULL,
    -- which decisions about channels its program obeys
    obeys VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
    -- who began it; the server's word
    begun_by VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    -- the moment of the drain that it obeys, in microseconds
    obeys_us BIGINT NULL,
    KEY to_sweep (swept_at, ended_at),
    KEY boot (boot_id, clock_us)
) ENGINE = InnoDB;

-- The last beat of each session, once more, and its rounds (object/position.sql says why).
CREATE TABLE IF NOT EXISTS tl_beat (
    session_id UUID NOT NULL,
    beat BIGINT UNSIGNED NOT NULL,
    rounds BIGINT UNSIGNED NOT NULL DEFAULT 0,
    PRIMARY KEY (session_id, beat, rounds)
) ENGINE = InnoDB;

-- One row for each statement by which a session was granted a send, until one of its next rounds
-- removes it (object/position.sql says why).
CREATE TABLE IF NOT EXISTS tl_receipt (
    session_id UUID NOT NULL,
    token BINARY(16) NOT NULL,
    PRIMARY KEY (session_id, token)
) ENGINE = InnoDB;

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
    KEY begun (begun_at),
    KEY said (what, said(64)),
    KEY what (what, begun_at)
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
    PRIMARY KEY (act_no, row_no),
    KEY trade (cust_no, serial_no, op_code)
) ENGINE = InnoDB;

-- Which schema this is, and the oldest client that it still serves.  The version is raised once
-- everything is there (migrate_done).
--   identity     the server that was accepted, without its port, which says nothing about the data
--   restore_no   how many restores were declared or found (tl_restore)
--   accepted_no  which of them was accepted last, and accepted_at when.  While the two numbers
--                differ, one is open
--   fleet, shard   which shard of which fleet this database is; NULL: of none.  `tradelock fleet
--                join` writes it last, when the triggers are there that keep customers apart (fleet/)
--   installation   the installation's own name, made once.  Whatever is made of this database is the
--                same installation: a promoted replica, a node of a cluster, a copy that was moved
CREATE TABLE IF NOT EXISTS tl_schema (
    one TINYINT NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version INT UNSIGNED NOT NULL,
    oldest_client INT UNSIGNED NOT NULL,
    identity VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    restore_no BIGINT UNSIGNED NOT NULL DEFAULT 0,
    accepted_no BIGINT UNSIGNED NOT NULL DEFAULT 0,
    accepted_at DATETIME(6) NULL,
    fleet VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
    shard VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
    installation UUID NULL,
    -- the site of all channel keys; NULL: no session has begun yet
    site VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    -- nothing younger is purged, whoever asks; `tradelock migrate` raises it to the setting
    retention_ms BIGINT UNSIGNED NOT NULL DEFAULT 7776000000 CHECK (retention_ms >= 86400000),
    -- how long after their end trades keep their contents; NULL: for ever.  `tradelock migrate` writes
    -- the setting here, and nobody's janitor blanks what is younger
    payload_keep_ms BIGINT UNSIGNED NULL
) ENGINE = InnoDB;
-- A variable's value is what replicas get, whatever the format of the binary log.
SET @tl_installation = UUID();
INSERT IGNORE INTO tl_schema (one, version, oldest_client, installation)
VALUES (1, 0, 1, @tl_installation);

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

-- How far the janitors have come with blanking contents, in the order of trade_lock's key, and until
-- when they rest after its end.
CREATE TABLE IF NOT EXISTS tl_blanking (
    one TINYINT NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL DEFAULT '',
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL DEFAULT '',
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL DEFAULT '',
    rest_until DATETIME(6) NOT NULL DEFAULT '1970-01-01'
) ENGINE = InnoDB;
INSERT IGNORE INTO tl_blanking (one) VALUES (1);

-- Each restore: how it came to be known, who proposed to accept it and who confirmed that.
-- A row is appended; nobody of ours may change one, nor write `account`, the server's word
-- for who it was (see trade_resolution).
--   step      declared by an operator, or found by a program; promoted: offered as the next writer;
--             fenced: the one before is off for certain; proposed; confirmed; proved: accepted by
--             itself, since every process found there all that it had been told was committed;
--             kept: which server has the accepted one's commits before they are answered
--             (object/position.sql)
--   was       the server that had been accepted;  identity  the one that it was written on
--   doubtful  of a confirmation: how many trades it made ones in doubt
CREATE TABLE IF NOT EXISTS tl_restore (
    restore_no BIGINT UNSIGNED NOT NULL DEFAULT 0,
    step VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    was VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    identity VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    doubtful BIGINT UNSIGNED NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
        DEFAULT (CURRENT_USER()),
    decided_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    PRIMARY KEY (restore_no, step),
    KEY decided (decided_at),
    CONSTRAINT step_of_a_restore CHECK (step IN ('declared', 'found', 'promoted', 'fenced',
        'proposed', 'confirmed', 'proved', 'kept'))
) ENGINE = InnoDB;

-- The sessions that have to say whether the promoted server has all that they know, and what they
-- said.
--   attested_at  NULL: not yet
--   missing      how many of the last commits that it was told of are not there
--   kept         whether the server that it came from answered a commit only when a replica had it;
--                NULL: it came from none
CREATE TABLE IF NOT EXISTS tl_attestation (
    restore_no BIGINT UNSIGNED NOT NULL,
    session_id UUID NOT NULL,
    attested_at DATETIME(6) NULL,
    missing INT UNSIGNED NOT NULL DEFAULT 0,
    kept TINYINT NULL,
    PRIMARY KEY (restore_no, session_id)
) ENGINE = InnoDB;

-- What is missing: the step's name and token, and of which trade, resource or session (then in
-- serial_no); '' where the process cannot say.
CREATE TABLE IF NOT EXISTS tl_attestation_missing (
    restore_no BIGINT UNSIGNED NOT NULL,
    session_id UUID NOT NULL,
    item INT UNSIGNED NOT NULL,
    step VARCHAR(31) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    serial_no VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    token BINARY(16) NULL,
    PRIMARY KEY (restore_no, session_id, item)
) ENGINE = InnoDB;

-- The slots that this database has or had; no row: it never had that slot, or a move to here was
-- given up.
--   state      owned; leaving, to `other`: nothing begins, and what was begun ends; gone, to
--              `other`; arriving, from `other`
--   version    rises when the slot is handed over, and is the same at both ends then: whoever owns a
--              slot under the highest version has it
--   sealed     of a leaving slot: nothing is in process, and nothing of it changes any more, so that
--              it can be copied
--   tables     business tables, with commas between.  Where the slot is owned: those that go along
--              whenever it moves.  Gone or arriving: those that may have copies of its rows here
--   taking     of a leaving slot: those that go along with this move.  Whoever goes on with it takes
--              the same ones
--   token      of whoever moves it now: another move begins with another one, and the former does
--              nothing more.  Of a gone slot: somebody removes its rows here, or did, or gave up
--              a move that brought them in part, so that it is no source of them any more.  No
--              role may read it (sql/object/fleet.sql)
CREATE TABLE IF NOT EXISTS tl_slot (
    slot SMALLINT UNSIGNED NOT NULL PRIMARY KEY,
    state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    version BIGINT UNSIGNED NOT NULL DEFAULT 1,
    other VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
    sealed TINYINT NOT NULL DEFAULT 0,
    tables VARCHAR(4200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    taking VARCHAR(4200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    token BINARY(16) NULL,
    changed_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT (USER()),
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    CONSTRAINT slot_is_known CHECK (slot < 1024),
    CONSTRAINT state_of_a_slot CHECK (state IN ('owned', 'leaving', 'gone', 'arriving')),
    CONSTRAINT only_leaving_is_sealed CHECK (sealed = 0 OR state = 'leaving'),
    CONSTRAINT only_leaving_takes CHECK (taking IS NULL OR state = 'leaving')
) ENGINE = InnoDB;

-- A set of an archive of which trades were removed, written by the procedure that removes them
-- (sql/object/purge.sql); it was complete and on the disk before.  The sum of a set's manifest stands
-- for the whole chain of sets up to it, since each manifest has the sum of the one before.
--   sha         SHA-256 of its manifest
--   before_sha  that of the set before; '-': it is the first of an archive
--   trades      how many of them were removed
CREATE TABLE IF NOT EXISTS tl_archive_set (
    sha CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    before_sha CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    set_no INT UNSIGNED NOT NULL,
    trades BIGINT UNSIGNED NOT NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
        DEFAULT (CURRENT_USER()),
    noted_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    KEY followed (before_sha)
) ENGINE = InnoDB;
