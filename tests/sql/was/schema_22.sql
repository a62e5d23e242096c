-- What 'tradelock migrate' of schema 22 ran after schema_8.sql: its migrations, and its objects.
-- A restored or promoted database: remembered until two operators accept it.
--
-- tl_schema gets the identity without the port (which says nothing about the data), how
-- many restores were declared or found, which of them was the last one accepted, and when.
-- While the numbers differ one is open.  The columns server_identity and restored_at are
-- kept in step for programs that are older than this migration.
ALTER TABLE tl_schema
    ADD COLUMN IF NOT EXISTS identity VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    ADD COLUMN IF NOT EXISTS restore_no BIGINT UNSIGNED NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS accepted_no BIGINT UNSIGNED NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS accepted_at DATETIME(6) NULL;
-- 'host port id directory' without its second word.
UPDATE tl_schema
SET identity = CONCAT(SUBSTRING_INDEX(server_identity, ' ', 1),
    SUBSTRING(server_identity, LOCATE(' ', server_identity,
        LOCATE(' ', server_identity) + 1)))
WHERE identity IS NULL AND server_identity IS NOT NULL;

-- Each restore: how it came to be known, who proposed to accept it and who confirmed that.
-- A row is appended; nobody of ours may change one, nor write `account`, the server's word
-- for who it was (see trade_resolution).
--   step      declared by an operator, or found by a program; proposed; confirmed
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
    CONSTRAINT step_of_a_restore CHECK (step IN ('declared', 'found', 'proposed', 'confirmed'))
) ENGINE = InnoDB;

-- What an older program declared stays declared.  Without the help of triggers, which may not be
-- there yet, and not against them: they write what the first statement reads.
SET @tl_declared = (SELECT restore_no + 1
    FROM tl_schema WHERE one = 1 AND restored_at IS NOT NULL AND restore_no = accepted_no);
INSERT IGNORE INTO tl_restore (restore_no, step, reason, identity, account)
SELECT @tl_declared, 'declared', 'before restores had a record',
    CONCAT_WS(' ', @@hostname, @@server_id, @@datadir), USER()
FROM DUAL WHERE @tl_declared IS NOT NULL;
UPDATE tl_schema SET restore_no = @tl_declared
WHERE one = 1 AND restore_no = @tl_declared - 1;

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

-- What operators may do to trades, in the database itself: no account of theirs writes
-- trade_lock any more.  A decision is carried out by the trigger on its second half, evidence
-- has its effect by the trigger on its row, a retry is a procedure; all with the rights of the
-- account that ran the migration.  USER() in them is who is connected.
--
-- A decision has a third part when a worker did not carry it out, since the channel said that
-- the payment lives: then it is over, and nobody ends the trade by it.  `although_pending` is
-- said by whoever confirms: it is to be booked although the channel calls it pending.
ALTER TABLE trade_resolution
    ADD COLUMN IF NOT EXISTS although_pending TINYINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS log_no UUID NULL,
    -- 1 on the third part, which a procedure writes; no role may write this column
    ADD COLUMN IF NOT EXISTS worker TINYINT NOT NULL DEFAULT 0,
    DROP CONSTRAINT IF EXISTS part_is_1_or_2,
    ADD CONSTRAINT IF NOT EXISTS part_is_1_2_or_3 CHECK (part IN (1, 2, 3));

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
    CONSTRAINT closing_is_1_or_2 CHECK (part IN (1, 2))
) ENGINE = InnoDB;

-- How a process knew the server's clock when it last looked: so that the next one on the same boot
-- of the same machine sees a clock that was set while nobody lived.
ALTER TABLE tl_session
    -- of that machine's kernel; clock_us and the next two are by its CLOCK_BOOTTIME
    ADD COLUMN IF NOT EXISTS boot_id UUID NULL,
    -- when it looked, and between which bounds the server's clock was ahead then
    ADD COLUMN IF NOT EXISTS clock_us BIGINT NULL,
    ADD COLUMN IF NOT EXISTS clock_least_us BIGINT NULL,
    ADD COLUMN IF NOT EXISTS clock_most_us BIGINT NULL,
    -- the jumps of the clock that were on record by then
    ADD COLUMN IF NOT EXISTS clock_steps INT UNSIGNED NULL,
    ADD KEY IF NOT EXISTS boot (boot_id, clock_us);

-- What a request said of itself: how much money, in minor units of which currency.  The row keeps
-- what its first ask said; both are NULL where it said nothing.  Added without a copy of the table.
ALTER TABLE trade_lock
    ADD COLUMN IF NOT EXISTS amount_minor BIGINT NULL,
    ADD COLUMN IF NOT EXISTS currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NULL;

-- For how long a send of this epoch may at most be under way: a duration, which no clock changes.
-- Nobody but the server fills it in: with a new row its default, which tl_record_holds() sets once
-- the triggers are there, later the trigger trade_lock_updated.  NULL: not known.
--
-- A pause: the server rebuilds trade_lock, which has an indexed virtual column, and lets nobody
-- write to it meanwhile.
ALTER TABLE trade_lock ADD COLUMN IF NOT EXISTS longest_hold_ms INT UNSIGNED NULL;
-- Invisible to the older trigger, which names no columns.
ALTER TABLE trade_lock_past ADD COLUMN IF NOT EXISTS longest_hold_ms INT UNSIGNED NULL INVISIBLE;
-- It was inferred by these.
DROP FUNCTION IF EXISTS tl_hold_us;
DROP FUNCTION IF EXISTS tl_send_us;
DROP FUNCTION IF EXISTS tl_two_clocks;

-- Lists by serial number, of trades in conflict and of parked ones, by one index.  No step of a
-- trade that is asked for and ended changes these columns, so such a trade costs one entry more,
-- at the index' end where serial numbers rise.  Made online: services go on.
ALTER TABLE trade_lock ADD KEY IF NOT EXISTS serial (conflict, parked, serial_no);

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
    PRIMARY KEY (channel, op_code),
    KEY paused (paused),
    CONSTRAINT a_pause_has_a_reason CHECK (paused = 0 OR (decided_at IS NOT NULL
        AND reason IS NOT NULL AND actor IS NOT NULL AND account IS NOT NULL))
) ENGINE = InnoDB;

-- What a request said of itself besides its amount: the batch it belongs to, and the W3C trace
-- context under which it was made.  NULL where it said nothing.  The row keeps what its first ask
-- said.
--
-- A pause: the server rebuilds trade_lock, which has an indexed virtual column, and lets nobody
-- write to it meanwhile.
ALTER TABLE trade_lock
    ADD COLUMN IF NOT EXISTS batch VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL,
    ADD COLUMN IF NOT EXISTS traceparent CHAR(55) CHARACTER SET ascii COLLATE ascii_bin NULL;
-- Lists by batch, and by the channel's reference.  Serial numbers come second, so that the entries
-- of trades that name neither stand in one place, at whose end the index grows.  Made online:
-- services go on.
ALTER TABLE trade_lock
    ADD KEY IF NOT EXISTS batch (batch, serial_no),
    ADD KEY IF NOT EXISTS channel_ref (channel_ref, serial_no);

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

-- A promoted server that is accepted by itself, since every process found there all that it had
-- been told was committed (object/position.sql).
--
-- Where a session was ended: by NULL, a program that is older than this.  One that was ended on the
-- promoted server itself has to attest there all the same.
ALTER TABLE tl_session
    ADD COLUMN IF NOT EXISTS ended_on VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL;

-- promoted: offered as the next writer; fenced: the one before is off for certain; proved: accepted
-- by itself.
ALTER TABLE tl_restore
    DROP CONSTRAINT IF EXISTS step_of_a_restore,
    DROP CONSTRAINT IF EXISTS known_step_of_a_restore;
ALTER TABLE tl_restore
    ADD CONSTRAINT known_step_of_a_restore CHECK (step IN ('declared', 'found', 'promoted',
        'fenced', 'proposed', 'confirmed', 'proved'));

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

-- A fleet: several databases beside one another, its shards, each with whole customers.  Customers
-- belong to slots (tl_customer_slot), slots to shards.
--
-- Which shard of which fleet this database is; NULL: of none.  `tradelock fleet join` writes it
-- last, when the triggers are there that keep customers apart (sql/fleet).
ALTER TABLE tl_schema
    ADD COLUMN IF NOT EXISTS fleet VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
    ADD COLUMN IF NOT EXISTS shard VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL;

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
--              nothing more.  No role may read it (sql/object/fleet.sql)
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

-- Archives of purges (core/admin/archive.h): whose they are, and which sets they have.
--
-- The installation's own name, made once.  Whatever is made of this database is the same
-- installation: a promoted replica, a node of a cluster, a copy that was moved.
ALTER TABLE tl_schema ADD COLUMN IF NOT EXISTS installation UUID NULL;
-- A variable's value is what replicas get, whatever the format of the binary log.
SET @tl_installation = UUID();
UPDATE tl_schema SET installation = @tl_installation WHERE one = 1 AND installation IS NULL;

-- A set that was complete and on the disk, before anything of it was removed.  Append only.  The
-- sum of a set's manifest stands for the whole chain of sets up to it, since each manifest has the
-- sum of the one before.
--   sha         SHA-256 of its manifest
--   before_sha  that of the set before; '-': it is the first of an archive
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

-- Operators' acts (sql/schema/0016_acts.sql).  No role writes their tables: these procedures do,
-- under the name of whoever is connected, and nobody writes in an act of somebody else.

-- Begins an act.  Only what a job does needs no reason.
CREATE OR REPLACE PROCEDURE tl_act_begin(
    IN kind VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin,
    IN words VARCHAR(1023) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN by_log UUID, IN rows_planned BIGINT UNSIGNED, OUT act BIGINT UNSIGNED)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    IF tl_account_name(USER()) IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator has an account with a name';
    END IF;
    IF COALESCE(why, '') = '' AND kind NOT IN ('purge', 'audit') THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator says why';
    END IF;
    INSERT INTO tl_act (what, said, reason, actor, account, log_no, planned, begun_at)
    VALUES (kind, COALESCE(words, ''), COALESCE(why, ''), COALESCE(who, ''), USER(), by_log,
        COALESCE(rows_planned, 0), UTC_TIMESTAMP(6));
    SET act = LAST_INSERT_ID();
END;

-- Writes what became of a row, in the transaction that did it, once: a second call does nothing.
CREATE OR REPLACE PROCEDURE tl_act_row(IN act BIGINT UNSIGNED, IN number BIGINT UNSIGNED,
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN seen BIGINT UNSIGNED, IN became VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin,
    IN was_done TINYINT)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    IF @@in_transaction = 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a row is written in the transaction that did it';
    END IF;
    -- NULL is what a statement that was killed tells.
    IF NOT COALESCE(EXISTS (SELECT 1 FROM tl_act WHERE act_no = act AND ended_at IS NULL
        AND tl_account_name(account) = tl_account_name(USER())), 0) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'no such act of this account is under way';
    END IF;
    INSERT INTO tl_act_row (act_no, row_no, cust_no, serial_no, op_code, fence, result, acted_at)
    VALUES (act, number, cust, serial, op, seen, became, UTC_TIMESTAMP(6))
    ON DUPLICATE KEY UPDATE row_no = number;
    IF ROW_COUNT() = 1 THEN
        UPDATE tl_act
        SET done = done + IF(was_done, 1, 0), skipped = skipped + IF(was_done, 0, 1)
        WHERE act_no = act;
    END IF;
END;

-- Ends an act, with what it came to; a second call does nothing.
CREATE OR REPLACE PROCEDURE tl_act_end(IN act BIGINT UNSIGNED,
    IN sums VARCHAR(1023) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
UPDATE tl_act SET ended_at = UTC_TIMESTAMP(6), counts = sums
WHERE act_no = act AND ended_at IS NULL AND tl_account_name(account) = tl_account_name(USER());

-- Notes an act that one transaction does, within it: about one trade, or (cust NULL) about none.
CREATE OR REPLACE PROCEDURE tl_act_note(
    IN kind VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin,
    IN words VARCHAR(1023) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN by_log UUID,
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin, IN seen BIGINT UNSIGNED,
    IN became VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE act BIGINT UNSIGNED;

    IF @@in_transaction = 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an act is noted in the transaction that does it';
    END IF;
    CALL tl_act_begin(kind, words, why, who, by_log, cust IS NOT NULL, act);
    IF cust IS NOT NULL THEN
        CALL tl_act_row(act, 1, cust, serial, op, seen, became, 1);
    END IF;
    CALL tl_act_end(act, NULL);
END;

-- Removes acts that began before the cut, each with its rows; at most about so many rows a call.
-- An act is kept as long as the trades that it was about: both go by the same age.
CREATE OR REPLACE PROCEDURE tl_purge_acts(IN older_ms BIGINT UNSIGNED,
    IN most INT UNSIGNED, OUT purged INT UNSIGNED)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE cut DATETIME(6) DEFAULT tl_purge_cut(older_ms);
    DECLARE oldest BIGINT UNSIGNED;
    DECLARE removed INT UNSIGNED;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET oldest = NULL;

    SET purged = 0;
    walk: LOOP
        SELECT act_no INTO oldest FROM tl_act
        WHERE begun_at < cut ORDER BY begun_at, act_no LIMIT 1;
        IF oldest IS NULL OR purged >= most THEN
            LEAVE walk;
        END IF;
        DELETE FROM tl_act_row WHERE act_no = oldest ORDER BY row_no LIMIT most;
        SET removed = ROW_COUNT(), purged = purged + removed;
        IF removed < most THEN
            DELETE FROM tl_act WHERE act_no = oldest;
            SET purged = purged + 1;
        END IF;
    END LOOP;
END;

-- Which triggers, functions, procedures and views there are, one line "kind name" for each.  An
-- account sees in information_schema only what it has rights on, but the doctor of a service must
-- know of all.  Triggers are found by event_object_schema, as the server looks for them by their
-- table's schema.  With any other condition it opens every table of every database, and fails at
-- one that is just being altered.
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

-- What they are made of: "kind name HASH" for each trigger, function and procedure, by the server's
-- text.  A view has none that could be compared: the server keeps it in words of its own.
CREATE OR REPLACE FUNCTION tl_parts_made()
RETURNS TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
READS SQL DATA SQL SECURITY DEFINER
RETURN CONCAT_WS('\n',
    (SELECT GROUP_CONCAT('trigger ', trigger_name, ' ', SHA2(CONCAT('CREATE OR REPLACE TRIGGER ',
            trigger_name, ' ', action_timing, ' ', event_manipulation, ' ON ',
            event_object_table, '\nFOR EACH ROW\n', action_statement), 256) SEPARATOR '\n')
        FROM information_schema.triggers WHERE event_object_schema = DATABASE()),
    (SELECT GROUP_CONCAT(LOWER(routine_type), ' ', routine_name, ' ',
            SHA2(CONCAT('SQL SECURITY ', security_type, '\n', routine_definition), 256)
            SEPARATOR '\n')
        FROM information_schema.routines WHERE routine_schema = DATABASE()));

-- What is asked of every decision about a channel: a transaction of the caller's, somebody who says
-- why, and, since a name that was mistyped would decide nothing, a channel that a workflow has
-- registered.  Then it has a row of its own for op, which may be '' for all operations.  '*' stands
-- for all channels, and for what names none; nobody registers it.
CREATE OR REPLACE PROCEDURE tl_channel_may_decide(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    IF @@in_transaction = 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a channel is decided about in one transaction';
    END IF;
    IF COALESCE(who, '') = '' OR COALESCE(why, '') = '' OR tl_account_name(USER()) IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator says who, and why, and has an account with a name';
    END IF;
    -- NULL is what a statement that was killed tells.
    IF NOT COALESCE(name = '*' AND op = '' OR EXISTS (SELECT 1 FROM trade_channel
        WHERE channel = name AND (op = '' OR op_code = op)), 0) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'no workflow has registered this channel and operation';
    END IF;
    INSERT IGNORE INTO trade_channel (channel, op_code) VALUES (name, op);
END;

-- An operator pauses a channel, or has it go on: for one operation, or with op '' as a whole.  What
-- is so already is refused, and nothing is changed.  The act is put on record in the caller's
-- transaction.
CREATE OR REPLACE PROCEDURE tl_channel_decide(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN pauses TINYINT, IN by_log UUID,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_paused TINYINT;

    CALL tl_channel_may_decide(name, op, who, why);
    SET is_paused = (SELECT paused FROM trade_channel
        WHERE channel = name AND op_code = op FOR UPDATE);
    IF COALESCE(is_paused = pauses, 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the channel is as it is to be already';
    END IF;
    UPDATE trade_channel
    SET paused = pauses, decided_at = UTC_TIMESTAMP(6), reason = why, actor = who,
        account = USER()
    WHERE channel = name AND op_code = op;
    CALL tl_act_note(IF(pauses, 'pause', 'resume'), TRIM(CONCAT('channel ', name, ' ', op)), why, who,
        by_log, NULL, NULL, NULL, 0, 'done');
END;

-- An operator limits a channel, for one operation or with op '' for all together, or lifts the
-- limit (both numbers NULL).  What is so already is refused.  What was given away stays so: the
-- moment of the next send and the sessions' permits.
CREATE OR REPLACE PROCEDURE tl_channel_limit(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN most INT UNSIGNED, IN rate INT UNSIGNED, IN by_log UUID,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_so TINYINT;

    CALL tl_channel_may_decide(name, op, who, why);
    INSERT IGNORE INTO trade_channel_limit
        (channel, op_code, decided_at, reason, actor, account)
        VALUES (name, op, UTC_TIMESTAMP(6), why, who, USER());
    SET is_so = (SELECT sends <=> most AND per_second <=> rate FROM trade_channel_limit
        WHERE channel = name AND op_code = op FOR UPDATE);
    IF COALESCE(is_so, 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the channel is as it is to be already';
    END IF;
    UPDATE trade_channel_limit
    SET sends = most, per_second = rate, decided_at = UTC_TIMESTAMP(6), reason = why, actor = who,
        account = USER()
    WHERE channel = name AND op_code = op;
    CALL tl_act_note(IF(most IS NULL AND rate IS NULL, 'unlimit', 'limit'),
        TRIM(CONCAT('channel ', name, ' ', op)), why, who, by_log, NULL, NULL, NULL, 0, 'done');
END;

-- A process takes its share of a limited channel.  It commits by itself, as a purge does.
--   used     so many sends of this session are under way; it begins no more before the answer
--   want     so many it could use at a time, of which hold_ms is the longest
--   claims   so many sends it would begin in the next moment
--   share    what came of it: how many at a time this session may have from now on; how many sends
--            it may begin; in how many microseconds the first of them, each other one an interval
--            after the one before it; and the interval in microseconds.  Empty: no such limit.
--
-- All who take lock the limit's row, so what others have and the next moment are true until the
-- commit.  The other sessions' permits count until their session was ended and their longest send
-- is over; a process that was killed is found dead by others, and what it sent may still be at the
-- channel.  A lost answer is taken as "no more than used": the row may have more, never less, since
-- used was told by whoever began no more.  Each session that wants some has its part before another
-- one has more; if there are fewer permits than sessions, they take turns.  The sessions are read
-- without a lock, so no heartbeat waits.  A next moment that is further away than anybody gives
-- away was told by another clock.
--
-- What a killed process had counts for nothing once its longest send is over.  A day later, when no
-- clock that is set back makes it count again, its row is removed, one with each taking: under the
-- limit's row, and by its key, so nobody's heartbeat waits for that either.
CREATE OR REPLACE PROCEDURE tl_channel_share(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN own UUID, IN used INT UNSIGNED, IN want INT UNSIGNED, IN hold BIGINT UNSIGNED,
    IN claims INT UNSIGNED,
    OUT share VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_there TINYINT DEFAULT 0;
    DECLARE most, rate, had, goal, taken, short, takers, part INT UNSIGNED DEFAULT NULL;
    DECLARE next, now_at DATETIME(6);
    DECLARE gone UUID DEFAULT NULL;
    DECLARE interval_us, ahead_us BIGINT DEFAULT 0;
    DECLARE given BIGINT DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    SET share = '';
    START TRANSACTION;
    SELECT 1, l.sends, l.per_second, l.next_at INTO is_there, most, rate, next
        FROM trade_channel_limit l WHERE l.channel = name AND l.op_code = op FOR UPDATE;
    SET now_at = SYSDATE(6);
    IF is_there AND most IS NOT NULL THEN
        SELECT COALESCE(SUM(s.session_id IS NOT NULL AND s.ended_at IS NULL
                AND p.wanted > p.permits), 0),
            COALESCE(SUM(s.session_id IS NOT NULL AND s.ended_at IS NULL AND p.wanted > 0), 0),
            MIN(IF(s.session_id IS NULL OR s.ended_at + INTERVAL p.hold_ms * 1000 MICROSECOND
                < now_at - INTERVAL 1 DAY, p.session_id, NULL))
            INTO short, takers, gone
            FROM trade_channel_permit p FORCE INDEX (PRIMARY)
            LEFT JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = p.session_id
            WHERE p.channel = name AND p.op_code = op AND p.session_id <> own;
        SET part = most DIV (takers + 1);
        SELECT COALESCE(SUM(GREATEST(p.permits,
                IF(s.ended_at IS NULL, LEAST(p.wanted, part), 0))), 0)
            INTO taken
            FROM trade_channel_permit p FORCE INDEX (PRIMARY)
            LEFT JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = p.session_id
            WHERE p.channel = name AND p.op_code = op AND p.session_id <> own
                AND s.session_id IS NOT NULL AND (s.ended_at IS NULL
                    OR s.ended_at + INTERVAL p.hold_ms * 1000 MICROSECOND >= now_at);
        SET had = COALESCE((SELECT p.permits FROM trade_channel_permit p
            WHERE p.channel = name AND p.op_code = op AND p.session_id = own), 0);
        SET goal = IF(taken < most, LEAST(want, most - taken), 0);
        IF part = 0 AND had > 0 AND short > 0 THEN
            SET goal = 0;
        END IF;
        IF want > 0 OR used > 0 THEN
            INSERT INTO trade_channel_permit
                (channel, op_code, session_id, permits, wanted, hold_ms)
                VALUES (name, op, own, GREATEST(goal, used), want, hold)
            ON DUPLICATE KEY UPDATE permits = GREATEST(goal, used), wanted = want,
                hold_ms = GREATEST(hold_ms, hold);
        END IF;
    END IF;
    -- Also where the limit was lifted: what is left would count as soon as there is another one.
    IF want = 0 AND used = 0 THEN
        DELETE FROM trade_channel_permit
        WHERE channel = name AND op_code = op AND session_id = own;
    END IF;
    IF gone IS NOT NULL THEN
        DELETE FROM trade_channel_permit
        WHERE channel = name AND op_code = op AND session_id = gone;
    END IF;
    IF is_there AND rate IS NOT NULL THEN
        SET interval_us = CEIL(1000000 / rate);
        IF COALESCE(next < now_at OR next > now_at + INTERVAL 2 SECOND, 1) THEN
            SET next = now_at;
        END IF;
        SET ahead_us = TIMESTAMPDIFF(MICROSECOND, now_at, next);
        -- What begins within half a second, and one at least of those that are slower.
        SET given = LEAST(claims, IF(ahead_us < 500000,
            1 + (500000 - ahead_us) DIV interval_us, 0));
        IF given > 0 THEN
            UPDATE trade_channel_limit
            SET next_at = next + INTERVAL given * interval_us MICROSECOND
            WHERE channel = name AND op_code = op;
        END IF;
    END IF;
    COMMIT;
    IF is_there THEN
        SET share = CONCAT_WS(' ', COALESCE(goal, 0), given, ahead_us, interval_us);
    END IF;
END;

-- An operator gives a channel a breaker, for one operation or with op '' for all together, or takes
-- it away (fails NULL).  What is so already is refused.  A breaker that is open stays open under
-- its new numbers; without a breaker the channel is open to all.  What was counted before is void.
CREATE OR REPLACE PROCEDURE tl_channel_breaker(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN fails INT UNSIGNED, IN percent INT UNSIGNED, IN seconds INT UNSIGNED,
    IN every INT UNSIGNED, IN by_log UUID,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_so TINYINT;

    CALL tl_channel_may_decide(name, op, who, why);
    INSERT IGNORE INTO trade_channel_breaker
        (channel, op_code, decided_at, reason, actor, account)
        VALUES (name, op, UTC_TIMESTAMP(6), why, who, USER());
    SET is_so = (SELECT unknowns <=> fails
            AND (fails IS NULL OR (share <=> percent AND window_s <=> seconds AND probe_s = every))
        FROM trade_channel_breaker WHERE channel = name AND op_code = op FOR UPDATE);
    IF COALESCE(is_so, 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the channel is as it is to be already';
    END IF;
    UPDATE trade_channel_breaker
    SET unknowns = fails, share = percent, window_s = seconds,
        probe_s = IF(fails IS NULL, probe_s, every), era = era + 1,
        opened_at = IF(fails IS NULL, NULL, opened_at),
        next_at = IF(fails IS NULL, NULL, next_at),
        in_a_row = 0, window_at = IF(opened_at IS NULL, NULL, window_at),
        window_sends = IF(opened_at IS NULL, 0, window_sends), window_unknowns = 0,
        decided_at = UTC_TIMESTAMP(6), reason = why, actor = who, account = USER()
    WHERE channel = name AND op_code = op;
    CALL tl_act_note(IF(fails IS NULL, 'unbreak', 'breaker'),
        TRIM(CONCAT('channel ', name, ' ', op)), why, who, by_log, NULL, NULL, NULL, 0, 'done');
END;

-- A process tells what it counted since it told last, or what its probe came to.  It commits by
-- itself, as a purge does.
--   seen       the era in which it was counted
--   probe      the number of its probe, which is over; 0: none, and the numbers count
--   answered   1: the channel gave an answer, to the probe or to a send; 2: nothing was called by the
--              probe, so the next one need not wait
--   tail       so many unknown outcomes came after the last answer, or at all
--   fails      so many of all these sends are unknown
--   ended      so many sends ended
--   state      what came of it: whether it is open, its era, how many were told in a row, and in
--              how many milliseconds a probe may begin.  Empty: no such breaker.
--
-- All who tell, and all who probe, lock the breaker's row, so of many that are at the bound one
-- opens it, once.  What was counted before it opened or was decided about is of an earlier era, and
-- void: sends that were under way at the opening neither close it nor open it again.  An open
-- breaker is closed by its last probe alone: one whose time was over, and after which another one
-- began, says nothing.  A probe that is told twice, after a lost answer, finds it closed, or moves
-- the next one.  While it is open, what is in a row are probes without an answer, by which processes
-- know whose turn the next one is, and the window is the last probe's: since when, and whether it
-- goes on (window_sends 1).  Only whoever looks at a breaker reads that; no process goes by it.
-- "In a row" is by the order in which processes tell, not in which the sends ended.
CREATE OR REPLACE PROCEDURE tl_channel_told(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN seen BIGINT UNSIGNED, IN probe BIGINT UNSIGNED, IN answered TINYINT,
    IN tail BIGINT UNSIGNED, IN fails BIGINT UNSIGNED, IN ended BIGINT UNSIGNED,
    OUT state VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_there TINYINT DEFAULT 0;
    DECLARE most, percent, seconds, every INT UNSIGNED DEFAULT NULL;
    DECLARE is_era, told, sends, unknown_ones, last_probe, had BIGINT UNSIGNED DEFAULT 0;
    DECLARE since, begun, next, now_at DATETIME(6) DEFAULT NULL;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    SET state = '';
    START TRANSACTION;
    SELECT 1, b.unknowns, b.share, b.window_s, b.probe_s, b.era, b.opened_at, b.in_a_row,
            b.window_at, b.window_sends, b.window_unknowns, b.probe_no, b.next_at, b.hold_ms
        INTO is_there, most, percent, seconds, every, is_era, since, told,
            begun, sends, unknown_ones, last_probe, next, had
        FROM trade_channel_breaker b
        WHERE b.channel = name AND b.op_code = op AND b.unknowns IS NOT NULL FOR UPDATE;
    SET now_at = SYSDATE(6);
    IF is_there AND since IS NOT NULL AND probe > 0 AND probe = last_probe THEN
        SET next = now_at + INTERVAL IF(answered = 2, 0, every) SECOND;
        SET told = told + IF(answered = 0, 1, 0);
        IF answered = 1 THEN
            SET since = NULL, next = NULL, told = 0, begun = NULL;
        END IF;
        UPDATE trade_channel_breaker
        SET opened_at = since, next_at = next, in_a_row = told, window_at = begun,
            window_sends = 0, window_unknowns = 0
        WHERE channel = name AND op_code = op;
    ELSEIF is_there AND since IS NULL AND probe = 0 AND seen = is_era THEN
        SET told = IF(answered, tail, told + tail);
        -- A window of the future was begun by another clock.
        IF COALESCE(begun > now_at OR begun + INTERVAL seconds SECOND <= now_at, 1) THEN
            SET begun = now_at, sends = 0, unknown_ones = 0;
        END IF;
        SET sends = sends + ended, unknown_ones = unknown_ones + fails;
        IF told >= most OR COALESCE(unknown_ones >= most
            AND unknown_ones * 100 >= percent * sends, 0) THEN
            SET since = now_at, next = now_at + INTERVAL every SECOND, is_era = is_era + 1,
                told = 0, begun = NULL, sends = 0, unknown_ones = 0;
        END IF;
        UPDATE trade_channel_breaker
        SET opened_at = since, next_at = next, in_a_row = told, window_at = begun,
            window_sends = sends, window_unknowns = unknown_ones, era = is_era,
            opened = opened + IF(since IS NULL, 0, 1)
        WHERE channel = name AND op_code = op;
    END IF;
    COMMIT;
    -- Set by another clock, as channel_breakers.sql says.
    IF next > now_at + INTERVAL GREATEST(every * 1000, had) * 1000 MICROSECOND THEN
        SET next = now_at;
    END IF;
    IF is_there THEN
        SET state = CONCAT_WS(' ', since IS NOT NULL, is_era, told,
            COALESCE(TIMESTAMPDIFF(MICROSECOND, now_at, next) DIV 1000, 0));
    END IF;
END;

-- A process would probe an open breaker: would send to its channel, or ask it, one call at a time.
-- It commits by itself.
--   own      the number of the probe that it has, which goes on for hold; 0: none
--   hold     the probe is over after so many milliseconds
--   state    whether it is open, the number of the probe that it has now, or 0, and in how many
--            milliseconds another try is worth it.  Empty: no such breaker.
--
-- All who would probe lock the breaker's row, so one has it.  A process that is killed at its probe
-- frees it by being late: nothing of it is under way any more when the hold is over.  A lost answer
-- is taken as "no probe": it then stands until its hold is over.  A moment that is further away
-- than anybody sets was set by another clock, and is brought as near as it may be.
CREATE OR REPLACE PROCEDURE tl_channel_probe(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN own BIGINT UNSIGNED, IN hold BIGINT UNSIGNED,
    OUT state VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_there TINYINT DEFAULT 0;
    DECLARE every INT UNSIGNED DEFAULT NULL;
    DECLARE last_probe, had, held BIGINT UNSIGNED DEFAULT 0;
    DECLARE since, next, furthest, now_at DATETIME(6) DEFAULT NULL;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    SET state = '';
    START TRANSACTION;
    SELECT 1, b.probe_s, b.opened_at, b.probe_no, b.next_at, b.hold_ms
        INTO is_there, every, since, last_probe, next, had
        FROM trade_channel_breaker b
        WHERE b.channel = name AND b.op_code = op AND b.unknowns IS NOT NULL FOR UPDATE;
    SET now_at = SYSDATE(6);
    IF is_there AND since IS NOT NULL THEN
        SET furthest = now_at + INTERVAL GREATEST(every * 1000, had) * 1000 MICROSECOND;
        IF own > 0 AND own = last_probe THEN
            SET held = own, next = now_at + INTERVAL hold * 1000 MICROSECOND;
        ELSEIF COALESCE(next <= now_at, 1) THEN
            SET held = last_probe + 1, next = now_at + INTERVAL hold * 1000 MICROSECOND;
        END IF;
        IF held > 0 THEN
            UPDATE trade_channel_breaker
            SET window_at = IF(probe_no = held, window_at, now_at), window_sends = 1,
                probe_no = held, next_at = next, hold_ms = hold
            WHERE channel = name AND op_code = op;
        ELSEIF next > furthest THEN
            SET next = furthest;
            UPDATE trade_channel_breaker SET next_at = next WHERE channel = name AND op_code = op;
        END IF;
    END IF;
    COMMIT;
    IF is_there THEN
        SET state = CONCAT_WS(' ', since IS NOT NULL, held,
            COALESCE(GREATEST(TIMESTAMPDIFF(MICROSECOND, now_at, next) DIV 1000, 0), 0));
    END IF;
END;

-- The moment itself, in UTC.  UTC_TIMESTAMP(6) is the one at which the statement began, perhaps long
-- before it got a row that others had.
CREATE OR REPLACE FUNCTION tl_moment()
RETURNS DATETIME(6) NOT DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND;

-- Records a clock jump.  Many processes see one jump; the first that knew of all earlier jumps
-- records it.  It happened before_us before the call at the earliest, however long that waits.  The
-- low-water marks begin anew, since a row may have been written before them meanwhile.  They begin
-- at another moment for each jump, so a janitor that read a mark before, and is late, does not move
-- it.
CREATE OR REPLACE PROCEDURE tl_clock_stepped(IN known INT UNSIGNED, IN size BIGINT,
    IN before_us BIGINT UNSIGNED,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE recorded INT UNSIGNED;
    DECLARE called_at DATETIME(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    SELECT steps INTO recorded FROM tl_clock WHERE one = 1 FOR UPDATE;
    IF recorded = known THEN
        INSERT INTO tl_clock_step (step_no, size_us, earliest_at, noticed_at, actor, account)
        VALUES (known + 1, size, called_at - INTERVAL before_us MICROSECOND,
            UTC_TIMESTAMP(6), who, USER());
        UPDATE tl_clock SET steps = known + 1 WHERE one = 1;
        UPDATE trade_lock_low_water SET low_water =
            CAST('1970-01-01' AS DATETIME(6)) + INTERVAL known + 2 MICROSECOND;
    END IF;
    COMMIT;
END;

-- Adjusts one page of rows, in the order of their key, to the oldest jump that is not settled.  The
-- progress is written with the rows, so each row is adjusted once, whoever dies in between.
-- `settled` gets three numbers: jumps left, rows changed, and 0 if another process adjusts now.
--   A trade in process: its last send and its holder have the epoch's longest hold from now, and
-- "no such payment" is counted anew.  After a jump back its deadline becomes earlier by as much; it
-- never becomes later.
--   A lane that waits: it is due when the last send of its trade is over, if not before.
-- Now is when the row is adjusted: its send may have begun while the page waited for another row.
CREATE OR REPLACE PROCEDURE tl_clock_settle(IN most INT UNSIGNED, IN thread UUID,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    OUT settled VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE due, done INT UNSIGNED DEFAULT NULL;
    DECLARE rows_changed INT UNSIGNED DEFAULT 0;
    DECLARE mine TINYINT DEFAULT 1;
    DECLARE size BIGINT DEFAULT 0;
    DECLARE cust, last_cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    DECLARE serial, last_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    DECLARE op, last_op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    -- Whoever is at it goes on; nobody waits.
    SELECT c.steps, c.settled, c.cust_no, c.serial_no, c.op_code
        INTO due, done, cust, serial, op
        FROM tl_clock c WHERE c.one = 1 FOR UPDATE SKIP LOCKED;
    IF due IS NULL THEN
        SET due = 1, done = 0, mine = 0;
    ELSEIF done < due THEN
        SELECT s.size_us INTO size FROM tl_clock_step s WHERE s.step_no = done + 1;
        SELECT t.cust_no, t.serial_no, t.op_code INTO last_cust, last_serial, last_op
            FROM trade_lock t FORCE INDEX (PRIMARY)
            WHERE t.cust_no >= cust AND (t.cust_no > cust OR (t.cust_no = cust
                AND (t.serial_no > serial OR (t.serial_no = serial AND t.op_code > op))))
            ORDER BY t.cust_no, t.serial_no, t.op_code
            LIMIT 1 OFFSET most;
        UPDATE trade_lock FORCE INDEX (PRIMARY)
        SET step = 'clock', thread_no = thread, actor = who, rev = rev + 1,
            not_found_since = NULL,
            deadline_at = deadline_at + INTERVAL LEAST(size, 0) MICROSECOND,
            send_until = IF(send_until IS NULL, NULL, tl_moment()
                + INTERVAL COALESCE(longest_hold_ms, 604800000) * 1000 MICROSECOND),
            max_hold_until = IF(max_hold_until IS NULL, NULL, tl_moment()
                + INTERVAL COALESCE(longest_hold_ms, 604800000) * 1000 MICROSECOND),
            next_run_at = IF(next_run_at IS NULL, NULL,
                GREATEST(max_hold_until, tl_moment() + INTERVAL 5 SECOND)),
            updated_at = UTC_TIMESTAMP(6)
        WHERE cust_no >= cust AND (cust_no > cust OR (cust_no = cust
                AND (serial_no > serial OR (serial_no = serial AND op_code > op))))
            AND (last_cust IS NULL OR (cust_no <= last_cust AND (cust_no < last_cust
                OR serial_no < last_serial
                OR (serial_no = last_serial AND op_code <= last_op))))
            AND lane = 'S' AND status = 'P' AND repeatable = 0;
        SET rows_changed = ROW_COUNT();
        UPDATE trade_lock r FORCE INDEX (PRIMARY)
        LEFT JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = r.cust_no
            AND s.serial_no = r.serial_no
            AND s.op_code = LEFT(r.op_code, CHAR_LENGTH(r.op_code) - CHAR_LENGTH('_RETRY'))
            AND s.status = 'P' AND s.repeatable = 0
        SET r.step = 'clock', r.thread_no = thread, r.actor = who, r.rev = r.rev + 1,
            r.next_run_at = GREATEST(COALESCE(s.send_until, UTC_TIMESTAMP(6)),
                UTC_TIMESTAMP(6)),
            r.updated_at = UTC_TIMESTAMP(6)
        WHERE r.cust_no >= cust AND (r.cust_no > cust OR (r.cust_no = cust
                AND (r.serial_no > serial OR (r.serial_no = serial AND r.op_code > op))))
            AND (last_cust IS NULL OR (r.cust_no <= last_cust AND (r.cust_no < last_cust
                OR r.serial_no < last_serial
                OR (r.serial_no = last_serial AND r.op_code <= last_op))))
            AND r.lane = 'R' AND r.status = 'F' AND r.next_run_at
                > GREATEST(COALESCE(s.send_until, UTC_TIMESTAMP(6)), UTC_TIMESTAMP(6));
        SET rows_changed = rows_changed + ROW_COUNT();
        UPDATE tl_clock c
        SET c.settled = c.settled + (last_cust IS NULL),
            c.cust_no = COALESCE(last_cust, ''), c.serial_no = COALESCE(last_serial, ''),
            c.op_code = COALESCE(last_op, '')
        WHERE c.one = 1;
        SET due = due - (last_cust IS NULL);
    END IF;
    COMMIT;
    SET settled = CONCAT_WS(' ', due - done, rows_changed, mine);
END;

-- Ends a migration from a schema below 14, once the triggers are there.  From here on each row gets
-- longest_hold_ms as it is made; trades in process get it from their history.  A step was logged
-- later than its statement began, by a minute at most.  If the clock was set during such a trade, it
-- is the longest hold there is.
CREATE OR REPLACE PROCEDURE tl_record_holds()
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    DECLARE serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    DECLARE op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    DECLARE held_ms, locked_rev BIGINT UNSIGNED;
    DECLARE finished TINYINT DEFAULT 0;
    -- By so much the clock may have been set within a step, to which no row is adjusted yet.
    DECLARE jumped_ms BIGINT DEFAULT (SELECT LEAST(604800000,
            COALESCE(SUM(GREATEST(s.size_us, 0)), 0) DIV 1000)
        FROM tl_clock c JOIN tl_clock_step s ON s.step_no > c.settled WHERE c.one = 1);
    DECLARE not_known CURSOR FOR
        SELECT cust_no, serial_no, op_code FROM trade_lock
        WHERE longest_hold_ms IS NULL AND lane = 'S' AND status = 'P' AND repeatable = 0;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET finished = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    ALTER TABLE trade_lock ALTER longest_hold_ms SET DEFAULT (LEAST(604800000, GREATEST(0,
        (TIMESTAMPDIFF(MICROSECOND, created_at, COALESCE(max_hold_until, send_until)) + 999)
            DIV 1000)));
    OPEN not_known;
    trades: LOOP
        FETCH not_known INTO cust, serial, op;
        IF finished THEN
            LEAVE trades;
        END IF;
        START TRANSACTION;
        -- Before its history is read, which no step changes then.
        SELECT t.rev INTO locked_rev FROM trade_lock t
            WHERE t.cust_no = cust AND t.serial_no = serial AND t.op_code = op FOR UPDATE;
        SET finished = 0; -- a row that is gone is not the last one
        SELECT IF(SUM(l.step = 'clock') > 0, 604800000,
            LEAST(604800000, 60000 + jumped_ms + GREATEST(0, COALESCE(MAX(TIMESTAMPDIFF(MICROSECOND,
                l.logged_at, GREATEST(COALESCE(l.max_hold_until, l.send_until),
                    COALESCE(l.send_until, l.max_hold_until)))), 0)) DIV 1000))
            INTO held_ms FROM trade_lock_log l
            WHERE l.cust_no = cust AND l.serial_no = serial AND l.op_code = op;
        UPDATE trade_lock t FORCE INDEX (PRIMARY) SET t.longest_hold_ms = held_ms
            WHERE t.cust_no = cust AND t.serial_no = serial AND t.op_code = op
                AND t.longest_hold_ms IS NULL;
        COMMIT;
    END LOOP;
    CLOSE not_known;
END;

-- How far in the future the latest step lies on which the moments of a trade in process may rest;
-- negative: in the past.  A holder or a worker may have written the row anew, and then only history
-- tells of the steps before.  The moments rest on no step before the last adjustment, and on none
-- of an epoch that ended.
CREATE OR REPLACE FUNCTION tl_carried_us(cust VARCHAR(32) CHARACTER SET ascii,
    serial VARCHAR(64) CHARACTER SET ascii, op VARCHAR(32) CHARACTER SET ascii)
RETURNS BIGINT NOT DETERMINISTIC READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE since_rev BIGINT UNSIGNED DEFAULT COALESCE((SELECT MAX(p.rev) FROM trade_lock_past p
        WHERE p.serial_no = serial AND p.cust_no = cust AND p.op_code = op
            AND (p.step = 'clock' OR p.status <> 'P')), 0);
    RETURN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), GREATEST(
        CAST('1970-01-01' AS DATETIME(6)),
        COALESCE((SELECT MAX(p.logged_at) FROM trade_lock_past p
            WHERE p.serial_no = serial AND p.cust_no = cust AND p.op_code = op
                AND p.rev > since_rev), CAST('1970-01-01' AS DATETIME(6))),
        COALESCE((SELECT t.created_at FROM trade_lock t
            WHERE t.cust_no = cust AND t.serial_no = serial AND t.op_code = op
                AND since_rev = 0), CAST('1970-01-01' AS DATETIME(6)))));
END;

-- The server itself says who filed evidence, and when.  A copy of a row that moves keeps what it
-- says.
CREATE OR REPLACE TRIGGER trade_evidence_inserted BEFORE INSERT ON trade_evidence
FOR EACH ROW
BEGIN
    IF NOT tl_slot_copies() THEN
        SET NEW.account = USER(), NEW.filed_at = SYSDATE(6)
                + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND;
    END IF;
END;

-- What a piece of evidence does to the trade, in the same statement, also for SQL typed by hand.
-- Success of this epoch is noted on the row.  The conflict is set by success that contradicts the
-- row, and by a payment that is pending although it failed.  Token and fence stay, so the holder is
-- not disturbed.  A waiting or parked lane of this epoch becomes due at once; one that is held, when
-- it is opened, since the revision tells of whatever was filed meanwhile (open_lane.sql).
CREATE OR REPLACE TRIGGER trade_evidence_filed AFTER INSERT ON trade_evidence
FOR EACH ROW
whole:
BEGIN
    DECLARE now_status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE own, success, contradicts, doubted TINYINT DEFAULT 0;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET now_status = NULL;

    IF tl_slot_copies() THEN
        LEAVE whole;
    END IF;
    SELECT status, epoch = NEW.epoch AND (NEW.channel_key IS NULL OR channel_key IS NULL
        OR channel_key = NEW.channel_key)
    INTO now_status, own
    FROM trade_lock
    WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no AND op_code = NEW.op_code
    FOR UPDATE;
    IF now_status IS NOT NULL THEN
        SET success = NEW.outcome = 'SUCCEEDED',
            contradicts = (success AND (NOT own OR now_status = 'F'))
                OR (NEW.outcome = 'PENDING' AND NEW.final AND now_status = 'F'),
            doubted = own AND now_status = 'P';
        IF contradicts OR doubted THEN
            UPDATE trade_lock FORCE INDEX (PRIMARY)
            SET step = 'evidence', rev = rev + 1,
                thread_no = COALESCE(NEW.thread_no, thread_no),
                success_epoch = IF(success AND own, epoch, success_epoch),
                conflict = conflict OR contradicts,
                seen_by_channel = seen_by_channel OR (doubted
                    AND NEW.outcome IN ('SUCCEEDED', 'ACCEPTED', 'PENDING')),
                actor = NULL, updated_at = UTC_TIMESTAMP(6)
            WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no
                AND op_code = NEW.op_code;
        END IF;
        IF doubted THEN
            UPDATE trade_lock FORCE INDEX (PRIMARY)
            SET step = 'evidence', rev = rev + 1, fence = fence + 1,
                thread_no = COALESCE(NEW.thread_no, thread_no),
                next_run_at = UTC_TIMESTAMP(6), actor = NULL, updated_at = UTC_TIMESTAMP(6)
            WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no
                AND op_code = CONCAT(NEW.op_code, _ascii '_RETRY') AND status = 'F'
                AND epoch = NEW.epoch AND (next_run_at IS NOT NULL OR parked IS NOT NULL);
        END IF;
    END IF;
END;

-- Files the success of a trade whose row was lost in a restore; a web-hook, a statement or an
-- operator knows of it.  The row is made as a success, so that nobody is granted it again.  What
-- else was lost (contents, business rows) is not known here.  The evidence is written in the same
-- transaction.
CREATE OR REPLACE PROCEDURE tl_file_paid(
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN paid_epoch INT UNSIGNED,
    IN paid_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    IN ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN thread UUID)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
        token, fence, rev, epoch, sends, success_epoch, channel_key, channel_ref, remark,
        created_at, updated_at)
    SELECT cust, serial, op, 'S', 'Y', 'filed', thread, RANDOM_BYTES(16),
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), paid_epoch, 1,
        paid_epoch, paid_key, ref,
        'lost in a restore and filed since; its business rows were not booked',
        UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
    FROM tl_schema WHERE one = 1 AND tl_restored();
END;

-- A database that is a shard of a fleet.  The triggers that call these are made by `tradelock fleet
-- join` alone (sql/fleet), so a database of no fleet reads no slot.

-- Refuses what is not for this shard: 31003 where the customer's slot is not owned here, 31004 while
-- it is leaving.  what: 0 a row that is over is changed, or evidence or a decision filed; 1 a trade
-- or a hold begins; 2 a row is removed; 3 a finding is closed, which is about the rows that are here,
-- whoever has the slot.
--
-- The slot's row is locked in share mode until the transaction ends.  So whoever moves the slot
-- waits for all who were let through, and reads what they committed.  A consistent read would let an
-- ask commit after the slot was seen empty.  Nobody but a mover locks the row otherwise.
--
-- Where a trade begins or a finding is closed, whoever cannot have it at once is refused, by what the
-- slot was when the mover came: where it is owned or leaving 31004, and not 1205, which would say
-- that somebody has the trade.  What was committed before this statement began is the oldest that
-- this may be: by then the trade was not here, or it is told as it is.  All others hear 1205, or wait
-- if they wait for rows: a claim leaves out that row, and goes on with those of other slots.  Each
-- SELECT has its own alias: within a trigger the server opens a table once for each of its aliases,
-- and locks as the strongest of their statements says, so all of one alias would skip the row.
--
-- An arriving slot answers as one that is not here: its rows may not be here yet, and whoever is
-- told to come again may pay by other means.  Only the mover writes there, who knows the token.
CREATE OR REPLACE PROCEDURE tl_slot_check(
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin, IN what TINYINT)
READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE its_slot INT UNSIGNED DEFAULT tl_customer_slot(cust);
    DECLARE its_state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE held_state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE is_sealed TINYINT;
    DECLARE movers BINARY(16);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET its_state = 'none';

    IF what IN (1, 3) THEN
        SELECT state, sealed, token INTO its_state, is_sealed, movers
        FROM tl_slot AS free WHERE slot = its_slot LOCK IN SHARE MODE SKIP LOCKED;
        IF its_state = 'none' THEN
            -- Not in the condition: there it would lock the row.
            SELECT state INTO held_state FROM tl_slot AS held WHERE slot = its_slot;
        END IF;
    ELSE
        SELECT state, sealed, token INTO its_state, is_sealed, movers
        FROM tl_slot WHERE slot = its_slot LOCK IN SHARE MODE;
    END IF;
    IF held_state IN ('owned', 'leaving') OR (held_state IS NOT NULL AND what = 3) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31004,
            MESSAGE_TEXT = 'the slot of this customer is being moved to another shard';
    END IF;
    IF its_state = 'leaving' AND (is_sealed = 1 OR what = 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31004,
            MESSAGE_TEXT = 'the slot of this customer is being moved to another shard';
    END IF;
    -- NULL is what a statement that was killed tells.
    IF (its_state IN ('owned', 'leaving') OR (its_state = 'gone' AND what >= 2)
        OR (its_state = 'none' AND what = 3)
        OR (its_state = 'arriving' AND movers = @tl_mover)) IS NOT TRUE THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31003,
            MESSAGE_TEXT = 'the slot of this customer is not of this shard';
    END IF;
END;

-- The same for a step that found no row, in any database.
CREATE OR REPLACE PROCEDURE tl_slot_asked(
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin)
READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE its_fleet VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin;

    SELECT fleet INTO its_fleet FROM tl_schema WHERE one = 1;
    IF its_fleet IS NOT NULL THEN
        CALL tl_slot_check(cust, 0);
    END IF;
END;

-- Whether this connection copies the rows of an arriving slot: then evidence and decisions keep
-- what they say, and change no trade.  The trigger of sql/fleet compares the slot.
CREATE OR REPLACE FUNCTION tl_slot_copies() RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN @tl_mover IS NOT NULL AND COALESCE(EXISTS (SELECT 1 FROM tl_slot
    WHERE state = 'arriving' AND token = @tl_mover), 0);

-- The person behind an account: its name without the host, since one name from two hosts is one
-- person.  NULL for an account without a name, which anybody may use.
CREATE OR REPLACE FUNCTION tl_account_name(
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN NULLIF(LEFT(account, CHAR_LENGTH(account) - LOCATE('@', REVERSE(account))), '');

-- Checks each half, also one that is typed by hand.  A confirmation needs a proposal of somebody
-- else about the row as it is now; a refusal needs a confirmation.  A copy of a row that moves keeps
-- what it says, and decides nothing anew.
CREATE OR REPLACE TRIGGER trade_resolution_inserted BEFORE INSERT ON trade_resolution
FOR EACH ROW
whole:
BEGIN
    DECLARE proposer VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    IF tl_slot_copies() THEN
        LEAVE whole;
    END IF;
    SET NEW.decided_at = SYSDATE(6)
        + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND;
    IF tl_account_name(NEW.account) IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator has an account with a name';
    END IF;
    IF NEW.part < 3 AND NOT EXISTS (SELECT 1 FROM trade_lock WHERE cust_no = NEW.cust_no
        AND serial_no = NEW.serial_no AND op_code = NEW.op_code AND rev = NEW.rev
        AND fence = NEW.fence AND epoch = NEW.epoch) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the trade is not as the operators saw it';
    END IF;
    IF NEW.part = 3 AND (NEW.verdict <> 'F' OR NEW.worker <> 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'only a worker refuses a decision, and only that a trade failed';
    END IF;
    IF NEW.part > 1 THEN
        SET proposer = (SELECT account FROM trade_resolution WHERE cust_no = NEW.cust_no
            AND serial_no = NEW.serial_no AND op_code = NEW.op_code AND rev = NEW.rev
            AND verdict = NEW.verdict AND part = NEW.part - 1);
        IF proposer IS NULL THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'nothing was proposed that could be confirmed';
        END IF;
        IF NEW.part = 2 AND tl_account_name(proposer) = tl_account_name(NEW.account) THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'whoever proposed a decision cannot confirm it';
        END IF;
    END IF;
END;

-- The second half carries the decision out, in the same statement: there is no decision without its
-- step, and no such step without both halves.  Each is bound to the revision that both operators
-- saw.
--   clear   the conflict goes; a failure also forgets the success, or it could never be tried
--           anew
--   paid    the row is P again, without a holder and with the success on it, so that no
--           failure can be written and nothing can be sent; its lane is due, and the
--           workflow's own program ends it as Y together with its business rows.  Another
--           trade of an exclusive customer that is in process refuses it by its unique key
--   failed  it stays P, and its lane is due with all attempts before it: the workflow's own
--           program asks the channel and ends it as F together with its business rows.  From
--           here on nothing is armed (arm.sql).  Never while somebody holds it or could still
--           send, and never against evidence of success
-- The reason is for operators: it stands in trade_resolution and on the retry row, which no
-- customer is shown.
CREATE OR REPLACE TRIGGER trade_resolution_confirmed AFTER INSERT ON trade_resolution
FOR EACH ROW
whole:
BEGIN
    DECLARE step_token BINARY(16) DEFAULT RANDOM_BYTES(16);
    DECLARE retry_op VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT CONCAT(NEW.op_code, _ascii '_RETRY');
    DECLARE changed INT DEFAULT 1;
    IF tl_slot_copies() THEN
        LEAVE whole;
    END IF;
    IF NEW.part = 2 AND NEW.verdict = 'C' THEN
        UPDATE trade_lock FORCE INDEX (PRIMARY)
        SET step = 'resolve clear', thread_no = NEW.thread_no, log_no = NEW.log_no,
            token = step_token, fence = fence + 1, rev = rev + 1, conflict = 0,
            success_epoch = IF(status = 'F', NULL, success_epoch), actor = NEW.actor,
            updated_at = UTC_TIMESTAMP(6)
        WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no
            AND op_code = NEW.op_code AND rev = NEW.rev AND conflict = 1
            AND (status <> 'P' OR session_id IS NULL);
        SET changed = ROW_COUNT();
    ELSEIF NEW.part = 2 AND NEW.verdict = 'Y' THEN
        UPDATE trade_lock FORCE INDEX (PRIMARY)
        SET step = 'resolve paid', thread_no = NEW.thread_no, log_no = NEW.log_no,
            token = step_token, fence = fence + 1, rev = rev + 1, status = 'P',
            session_id = NULL, max_hold_until = NULL, next_run_at = NULL, conflict = 0,
            success_epoch = epoch, proof = '-', retryable = 0, result = NULL,
            actor = NEW.actor, updated_at = UTC_TIMESTAMP(6)
        WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no
            AND op_code = NEW.op_code AND rev = NEW.rev AND status = 'F'
            AND conflict = 1;
        SET changed = ROW_COUNT();
        -- A lane of a failed trade is closed, or another's that stood alone.
        INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
            log_no, token, fence, rev, epoch, next_run_at, remark, actor, created_at,
            updated_at)
        VALUES (NEW.cust_no, NEW.serial_no, retry_op, 'R', 'F', 'resolve paid',
            NEW.thread_no, NEW.log_no, step_token,
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), NEW.epoch,
            UTC_TIMESTAMP(6), NEW.reason, NEW.actor, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
        ON DUPLICATE KEY UPDATE attempts = 0, claims = 0, parked = NULL, repeatable = 0,
            status = 'F', step = VALUES(step), thread_no = VALUES(thread_no),
            log_no = VALUES(log_no), session_id = NULL, token = VALUES(token),
            fence = trade_lock.fence + 1, rev = trade_lock.rev + 1, epoch = VALUES(epoch),
            next_run_at = VALUES(next_run_at), remark = VALUES(remark),
            actor = VALUES(actor), updated_at = VALUES(updated_at);
    ELSEIF NEW.part = 2 AND NEW.verdict = 'F' THEN
        UPDATE trade_lock s
        STRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
            AND r.op_code = retry_op
        SET s.step = 'resolve failed', s.thread_no = NEW.thread_no, s.log_no = NEW.log_no,
            s.token = step_token, s.fence = s.fence + 1, s.rev = s.rev + 1,
            s.actor = NEW.actor, s.updated_at = UTC_TIMESTAMP(6),
            r.step = 'resolve failed', r.thread_no = NEW.thread_no, r.log_no = NEW.log_no,
            r.token = step_token, r.fence = r.fence + 1, r.rev = r.rev + 1,
            r.actor = NEW.actor, r.remark = NEW.reason, r.parked = NULL, r.attempts = 0,
            r.claims = LEAST(r.claims, 1), r.next_run_at = UTC_TIMESTAMP(6),
            r.updated_at = UTC_TIMESTAMP(6)
        WHERE s.cust_no = NEW.cust_no AND s.serial_no = NEW.serial_no
            AND s.op_code = NEW.op_code AND s.rev = NEW.rev AND s.status = 'P'
            AND s.session_id IS NULL
            AND (s.success_epoch IS NULL OR s.success_epoch <> s.epoch)
            AND (s.send_until IS NULL OR s.send_until <= UTC_TIMESTAMP(6))
            AND r.status = 'F' AND r.epoch = s.epoch
            AND (r.next_run_at IS NOT NULL OR r.parked IS NOT NULL);
        SET changed = ROW_COUNT();
    END IF;
    IF changed = 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the trade is not one of which that can be decided';
    END IF;
END;

-- A worker refuses to carry out a decision, and says why.  A second refusal does nothing, nor does
-- one without a confirmation.
CREATE OR REPLACE PROCEDURE tl_resolution_refused(
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN decided BIGINT UNSIGNED,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN by_thread UUID, IN by_log UUID)
MODIFIES SQL DATA SQL SECURITY DEFINER
INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch,
    reason, actor, thread_no, log_no, worker, account)
SELECT d.cust_no, d.serial_no, d.op_code, d.rev, d.verdict, 3, d.fence, d.epoch, why,
    'worker', by_thread, by_log, 1, USER()
FROM trade_resolution d
WHERE d.cust_no = cust AND d.serial_no = serial AND d.op_code = op AND d.rev = decided
    AND d.verdict = 'F' AND d.part = 2
ON DUPLICATE KEY UPDATE part = 3;

-- An operator makes a waiting or parked lane due now.  One statement changes both rows, sync row
-- first.  It is bound to the fence that the operator saw, so after any step in between it changes
-- nothing.  A row that was parked as poison is run alone once more: claims falls to 1, not to 0.
-- If the holder died and no janitor has opened the lane yet, the lane is opened, due at once.  This
-- decides nothing: the worker asks the channel.
-- Nobody may call it but the two procedures below, in their transaction.
CREATE OR REPLACE PROCEDURE tl_retry_lane(
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN seen BIGINT UNSIGNED, IN by_thread UUID, IN by_log UUID, IN step_token BINARY(16),
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT changed INT)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE retry_op VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT CONCAT(op, _ascii '_RETRY');

    IF COALESCE(who, '') = '' OR COALESCE(why, '') = '' THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator says who, and why';
    END IF;
    UPDATE trade_lock s
    STRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
        AND r.op_code = retry_op
    SET s.step = 'operator', s.thread_no = by_thread, s.log_no = by_log,
        s.token = step_token, s.fence = s.fence + 1, s.rev = s.rev + 1, s.actor = who,
        s.updated_at = UTC_TIMESTAMP(6),
        r.step = 'operator', r.thread_no = by_thread, r.log_no = by_log,
        r.token = step_token, r.fence = r.fence + 1, r.rev = r.rev + 1, r.actor = who,
        r.remark = why, r.parked = NULL, r.claims = LEAST(r.claims, 1),
        r.next_run_at = UTC_TIMESTAMP(6), r.updated_at = UTC_TIMESTAMP(6)
    WHERE s.cust_no = cust AND s.serial_no = serial AND s.op_code = op AND s.status = 'P'
        AND s.fence = seen AND s.session_id IS NULL AND r.status = 'F'
        AND r.epoch = s.epoch AND (r.next_run_at IS NOT NULL OR r.parked IS NOT NULL);
    SET changed = ROW_COUNT();
    IF changed = 0 THEN
        -- Death is final and was committed before, so reading the session without a lock is
        -- enough; the fence proves that the row is the one that was seen.
        UPDATE trade_lock FORCE INDEX (PRIMARY)
        SET step = 'reap', session_id = NULL, max_hold_until = NULL, next_run_at = NULL,
            token = step_token, fence = fence + 1, rev = rev + 1, actor = who,
            updated_at = UTC_TIMESTAMP(6)
        WHERE cust_no = cust AND serial_no = serial AND op_code = op AND status = 'P'
            AND fence = seen AND lane = 'S' AND repeatable = 0
            AND (session_id IS NULL OR next_run_at IS NOT NULL)
            AND (max_hold_until IS NULL OR max_hold_until <= UTC_TIMESTAMP(6)
                OR session_id IS NULL
                OR NOT EXISTS (SELECT 1 FROM tl_session x
                    WHERE x.session_id = trade_lock.session_id AND x.ended_at IS NULL));
        SET changed = ROW_COUNT();
        INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
            log_no, token, fence, rev, epoch, next_run_at, remark, actor, created_at,
            updated_at)
        SELECT s.cust_no, s.serial_no, retry_op, 'R', 'F', s.step, s.thread_no, s.log_no,
            s.token, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), s.epoch,
            UTC_TIMESTAMP(6), why, who, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
        FROM trade_lock s
        WHERE s.cust_no = cust AND s.serial_no = serial AND s.op_code = op
            AND s.status = 'P' AND s.token = step_token
        ON DUPLICATE KEY UPDATE
            attempts = IF(trade_lock.epoch <> VALUES(epoch) OR (trade_lock.status = 'F'
                AND trade_lock.next_run_at IS NULL AND trade_lock.parked IS NULL), 0,
                trade_lock.attempts),
            claims = IF(trade_lock.epoch <> VALUES(epoch) OR (trade_lock.status = 'F'
                AND trade_lock.next_run_at IS NULL AND trade_lock.parked IS NULL), 0,
                trade_lock.claims),
            parked = IF(trade_lock.epoch <> VALUES(epoch), NULL, trade_lock.parked),
            repeatable = 0, status = 'F', step = VALUES(step),
            thread_no = VALUES(thread_no), log_no = VALUES(log_no), session_id = NULL,
            token = VALUES(token), fence = trade_lock.fence + 1,
            rev = trade_lock.rev + 1, epoch = VALUES(epoch),
            next_run_at = VALUES(next_run_at), remark = VALUES(remark),
            actor = VALUES(actor), updated_at = VALUES(updated_at);
    END IF;
END;

-- One trade, by an act of its own.
CREATE OR REPLACE PROCEDURE tl_operator_retry(
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN seen BIGINT UNSIGNED, IN by_thread UUID, IN by_log UUID, IN step_token BINARY(16),
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE changed INT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    START TRANSACTION;
    CALL tl_retry_lane(cust, serial, op, seen, by_thread, by_log, step_token, who, why, changed);
    IF changed > 0 THEN
        CALL tl_act_note('retry', '', why, who, by_log, cust, serial, op, seen, 'done');
    END IF;
    COMMIT;
END;

-- One of many, as a row of an act that is under way; who and why are the act's.
CREATE OR REPLACE PROCEDURE tl_act_retry(IN act BIGINT UNSIGNED, IN number BIGINT UNSIGNED,
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN seen BIGINT UNSIGNED, IN by_thread UUID, IN step_token BINARY(16))
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE work UUID;
    DECLARE changed INT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    START TRANSACTION;
    -- SELECT INTO would count as a changed row.
    SET who = (SELECT actor FROM tl_act WHERE act_no = act),
        why = (SELECT reason FROM tl_act WHERE act_no = act),
        work = (SELECT log_no FROM tl_act WHERE act_no = act);
    CALL tl_retry_lane(cust, serial, op, seen, by_thread, work, step_token, who, why, changed);
    IF changed > 0 THEN
        CALL tl_act_row(act, number, cust, serial, op, seen, 'done', 1);
    END IF;
    COMMIT;
END;

CREATE OR REPLACE TRIGGER audit_closing_inserted BEFORE INSERT ON audit_closing
FOR EACH ROW
whole:
BEGIN
    DECLARE proposer VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    IF tl_slot_copies() THEN
        LEAVE whole;
    END IF;
    SET NEW.closed_at = SYSDATE(6)
        + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND;
    IF tl_account_name(NEW.account) IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator has an account with a name';
    END IF;
    IF NEW.part = 2 THEN
        SET proposer = (SELECT account FROM audit_closing
            WHERE finding = NEW.finding AND part = 1);
        IF proposer IS NULL THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'nobody has proposed to close this finding';
        END IF;
        IF tl_account_name(proposer) = tl_account_name(NEW.account) THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'whoever proposed to close a finding cannot confirm it';
        END IF;
    END IF;
END;

-- A session says what it found on the promoted server, under which number that was promoted.  Of a
-- session that need not say it, only what speaks against the server is written.  What was said
-- once is not taken back.
CREATE OR REPLACE PROCEDURE tl_attest(IN number BIGINT UNSIGNED, IN of_session UUID,
    IN count_missing INT UNSIGNED, IN was_kept TINYINT)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    IF count_missing > 0 OR was_kept = 0 THEN
        INSERT IGNORE INTO tl_attestation (restore_no, session_id) VALUES (number, of_session);
    END IF;
    UPDATE tl_attestation
    SET attested_at = COALESCE(attested_at, UTC_TIMESTAMP(6)),
        missing = GREATEST(missing, count_missing),
        kept = LEAST(COALESCE(kept, was_kept), COALESCE(was_kept, kept))
    WHERE restore_no = number AND session_id = of_session;
END;

CREATE OR REPLACE PROCEDURE tl_attest_missing(IN number BIGINT UNSIGNED, IN of_session UUID,
    IN which INT UNSIGNED, IN what VARCHAR(31) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin, IN its_token BINARY(16))
MODIFIES SQL DATA SQL SECURITY DEFINER
INSERT IGNORE INTO tl_attestation_missing
VALUES (number, of_session, which, what, cust, serial, op, its_token);

-- Accepts the promoted server by itself, if it has all that anybody was told of.  So nothing is put
-- in doubt, and who holds a lock keeps it.
--
-- A replica has a prefix of the commits of its primary.  A process that finds the newest commit that
-- it was told of finds with it all before that.  It has given up the old server before it looked,
-- and believes no answer from there any more; and it attests to one promoted server only.  So every
-- commit that a living process may act on is here.  Of a process that died, or cannot be reached,
-- nobody can say what it was told: as long as one session has not attested, operators decide.  Of
-- one that began when nothing was replicated any more nobody knows; so no commit may have been
-- answered before a replica had it (kept).
--
-- Where that one is off for certain (fenced), and each who attests saw that it answered no commit
-- before another server had it, a process that died can have been told of nothing that is not here,
-- and one that is cut off can be told of nothing more.  So nobody waits for a session that has ended
-- here, as observers end it, without attesting.
--
-- Nor may anybody else have spoken against this server: declared it, or found that something is
-- missing.  "Another server" is what every promoted one is.
--
-- The moment rises above that of the last accepting, whatever the clock says: by both processes tell
-- an earlier server.
CREATE OR REPLACE PROCEDURE tl_accept_proved(IN number BIGINT UNSIGNED)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE last_no, done_no BIGINT UNSIGNED;
    DECLARE asked, short, vouched, dead INT UNSIGNED;
    DECLARE fenced TINYINT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    SELECT restore_no, accepted_no INTO last_no, done_no
    FROM tl_schema WHERE one = 1 FOR UPDATE;
    SET fenced = EXISTS (SELECT 1 FROM tl_restore
        WHERE restore_no = number AND step = 'fenced' AND identity = tl_identity());
    SELECT COUNT(*), COALESCE(SUM(missing > 0 OR kept = 0), 0),
        COALESCE(SUM(attested_at IS NOT NULL AND missing = 0 AND kept = 1), 0),
        COALESCE(SUM(attested_at IS NULL), 0)
    INTO asked, short, vouched, dead
    FROM tl_attestation WHERE restore_no = number LOCK IN SHARE MODE;
    -- Sessions are read without a lock, so no heartbeat waits.
    IF dead > 0 THEN
        SET short = short + (SELECT COUNT(*)
            FROM tl_attestation a LEFT JOIN tl_session x ON x.session_id = a.session_id
            WHERE a.restore_no = number AND a.attested_at IS NULL
                AND NOT (fenced AND (x.session_id IS NULL OR x.ended_at IS NOT NULL)));
    END IF;
    IF last_no = number AND done_no < number AND short = 0 AND vouched > 0
        AND CAST(@@read_only AS CHAR) IN ('0', 'OFF')
        AND EXISTS (SELECT 1 FROM tl_restore
            WHERE restore_no = number AND step = 'promoted' AND identity = tl_identity())
        AND NOT EXISTS (SELECT 1 FROM tl_restore
            WHERE restore_no > done_no AND (step = 'declared' OR (step = 'found'
                AND reason <> 'it is another server than the one that was accepted'))) THEN
        UPDATE tl_schema
        SET accepted_no = number,
            accepted_at = GREATEST(UTC_TIMESTAMP(6),
                COALESCE(accepted_at + INTERVAL 1 MICROSECOND, UTC_TIMESTAMP(6))),
            identity = tl_identity(), restored_at = NULL,
            server_identity = CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir)
        WHERE one = 1;
        INSERT INTO tl_restore (restore_no, step, reason, account)
        VALUES (number, 'proved', CONCAT('nothing is missing: ', asked - dead,
            ' sessions attested', IF(dead > 0, CONCAT(', ', dead, ' died before'), '')), USER());
    END IF;
    COMMIT;
END;

-- Purging.  No account of ours may remove a row, so these procedures decide what may be removed,
-- with the rights of the account that ran the migration.  They go by pages, in the order of the
-- key, never remove what is younger than a day, and skip locked rows.  The fence of a key that
-- comes again begins with the server's microseconds, above every fence that the purged row had.

-- The cut: a row from before this moment is certainly older than older_ms, whatever the clock did
-- since.  A clock that is set forward makes rows look older, so the jumps on record since are taken
-- off.  A jump that nobody has seen yet shows by two other moments, of which the earlier counts.
-- One is what the time would be without clock jumps since the server was started: UUID() tells it,
-- whose moments follow the server's monotonic clock.  The other is the last sign of life of a
-- process, as in clock_open.sql.
CREATE OR REPLACE FUNCTION tl_purge_cut(older_ms BIGINT UNSIGNED)
RETURNS DATETIME(6) NOT DETERMINISTIC READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE now_at DATETIME(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE all_us, since_us BIGINT DEFAULT 0;
    DECLARE steady CHAR(36) CHARACTER SET ascii DEFAULT UUID();
    DECLARE steady_at, alive_at, over_at DATETIME(6);

    IF older_ms < 86400000 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'nothing younger than a day is purged';
    END IF;
    IF (SELECT c.steps > c.settled FROM tl_clock c WHERE c.one = 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the server''s clock was set: nothing is purged until that is settled';
    END IF;
    SET all_us = (SELECT COALESCE(SUM(s.size_us), 0) FROM tl_clock_step s
        WHERE s.size_us > 0);
    SET since_us = (SELECT COALESCE(SUM(s.size_us), 0) FROM tl_clock_step s
        WHERE s.size_us > 0 AND s.noticed_at >= now_at
            - INTERVAL older_ms * 1000 MICROSECOND - INTERVAL all_us MICROSECOND);
    SET steady_at = IF(SUBSTR(steady, 15, 1) = '1', CAST('1582-10-15' AS DATETIME(6))
        + INTERVAL CONV(CONCAT(SUBSTR(steady, 16, 3), SUBSTR(steady, 10, 4),
            SUBSTR(steady, 1, 8)), 16, 10) DIV 10 MICROSECOND, now_at);
    SET alive_at = (SELECT MAX(GREATEST(COALESCE(x.ended_at, x.started_at),
            x.alive_until - INTERVAL x.timeout_ms * 1000 MICROSECOND))
        FROM tl_session x FORCE INDEX (to_sweep) WHERE x.swept_at IS NULL);
    SET over_at = (SELECT MAX(x.swept_at) FROM tl_session x FORCE INDEX (to_sweep));
    RETURN LEAST(now_at - INTERVAL since_us MICROSECOND, steady_at,
            COALESCE(GREATEST(alive_at, over_at), alive_at, over_at, now_at))
        - INTERVAL older_ms * 1000 MICROSECOND;
END;

-- Whether a finished trade may go: `state` is NULL, or what it is made of just now: the revisions
-- of the row that decides and of its retry row (0: none), how many steps are kept, how many pieces
-- of evidence and decisions there are.  Evidence and decisions are append only, and a row's
-- revision rises with each step, so the same state is the same content.  The trade is in process or
-- in conflict, or changed, or could still be sent or tried anew, since the cut: it stays.  The rows
-- stay locked until the transaction ends.  `does` says what else: 0 nothing, 1 everything that
-- belongs to the trade is removed, 2 only if its state is still the one in `state`.  Nobody may call
-- it but the procedures below, in their transaction.
CREATE OR REPLACE PROCEDURE tl_purge_trade(IN does TINYINT, IN cut DATETIME(6),
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    INOUT state VARCHAR(127) CHARACTER SET ascii COLLATE ascii_bin,
    OUT locks INT UNSIGNED, OUT steps INT UNSIGNED, OUT filed INT UNSIGNED,
    OUT decided INT UNSIGNED)
MODIFIES SQL DATA SQL SECURITY DEFINER
whole:
BEGIN
    DECLARE ripe, in_use INT UNSIGNED DEFAULT 0;
    DECLARE own_rev, other_rev BIGINT UNSIGNED DEFAULT 0;
    DECLARE expected VARCHAR(127) CHARACTER SET ascii COLLATE ascii_bin DEFAULT state;
    DECLARE other VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT CONCAT(op, _ascii '_RETRY');

    SET state = NULL;
    -- The row that decides: a sync row, or a retry row that stands alone.
    SELECT COUNT(*), MAX(t.rev) INTO ripe, own_rev FROM trade_lock t
    WHERE t.cust_no = cust AND t.serial_no = serial AND t.op_code = op
        AND t.status <> 'P' AND t.conflict = 0 AND t.parked IS NULL
        AND (t.next_run_at IS NULL OR t.lane = 'S') AND t.updated_at < cut
        AND (t.send_until IS NULL OR t.send_until < cut)
        AND (t.deadline_at IS NULL OR t.deadline_at < UTC_TIMESTAMP(6))
    FOR UPDATE SKIP LOCKED;
    IF ripe = 0 THEN
        LEAVE whole;
    END IF;
    IF RIGHT(op, 6) = _ascii '_RETRY' THEN
        SELECT COUNT(*), 1, 0 INTO in_use, locks, other_rev FROM trade_lock t
        WHERE t.cust_no = cust AND t.serial_no = serial
            AND t.op_code = LEFT(op, CHAR_LENGTH(op) - 6);
    ELSE
        SELECT COALESCE(SUM(t.status = 'P' OR t.parked IS NOT NULL
                OR t.next_run_at IS NOT NULL OR t.updated_at >= cut), 0),
            1 + COUNT(*), COALESCE(MAX(t.rev), 0)
        INTO in_use, locks, other_rev FROM trade_lock t
        WHERE t.cust_no = cust AND t.serial_no = serial AND t.op_code = other
        FOR UPDATE;
    END IF;
    IF in_use > 0 THEN
        LEAVE whole;
    END IF;
    SELECT COUNT(*) INTO steps FROM trade_lock_past
    WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
    SELECT COUNT(*) INTO filed FROM trade_evidence
    WHERE cust_no = cust AND serial_no = serial AND op_code = op;
    SELECT COUNT(*) INTO decided FROM trade_resolution
    WHERE cust_no = cust AND serial_no = serial AND op_code = op;
    SET state = CONCAT_WS(' ', own_rev, other_rev, steps, filed, decided);
    IF does = 2 AND (state = expected) IS NOT TRUE THEN
        SET state = NULL;
        LEAVE whole;
    END IF;
    IF does > 0 THEN
        BEGIN
            -- Of a fleet: its slot is being moved, and the copy is compared with this.
            DECLARE EXIT HANDLER FOR 31003, 31004 SET state = NULL;
            DELETE FROM trade_lock
            WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
            DELETE FROM trade_lock_past
            WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
            DELETE FROM trade_evidence
            WHERE cust_no = cust AND serial_no = serial AND op_code = op;
            DELETE FROM trade_resolution
            WHERE cust_no = cust AND serial_no = serial AND op_code = op;
        END;
    END IF;
END;

-- A page of trades, in one transaction, for the procedures below.  It looks at a page of rows and
-- says in `purged` how many trades may go, how many rows it looked at, the last row's key, and how
-- many lock rows, kept steps, pieces of evidence and decisions go with the trades.  `does` is 0: it
-- only looks; 1: they are removed; 2: it looks, and says in `named` which they are, as a JSON array
-- of [cust_no, serial_no, op_code, state].
CREATE OR REPLACE PROCEDURE tl_purge_page(IN does TINYINT,
    IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin,
    OUT named LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen INT UNSIGNED DEFAULT 0;
    DECLARE locks, steps, filed, decided INT UNSIGNED DEFAULT 0;
    DECLARE its_locks, its_steps, its_filed, its_decided INT UNSIGNED;
    DECLARE finished TINYINT DEFAULT 0;
    DECLARE state VARCHAR(127) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE cut DATETIME(6) DEFAULT tl_purge_cut(older_ms);
    DECLARE cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin DEFAULT after_cust;
    DECLARE serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT after_serial;
    DECLARE op VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin
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

    SET named = '';
    START TRANSACTION;
    OPEN page;
    walk: LOOP
        FETCH page INTO cust, serial, op;
        IF finished THEN
            LEAVE walk;
        END IF;
        SET seen = seen + 1;
        CALL tl_purge_trade(does = 1, cut, cust, serial, op, state,
            its_locks, its_steps, its_filed, its_decided);
        IF state IS NOT NULL THEN
            SET removed = removed + 1, locks = locks + its_locks, steps = steps + its_steps,
                filed = filed + its_filed, decided = decided + its_decided;
            IF does = 2 THEN
                SET named = CONCAT(named, IF(named = '', '', ','),
                    JSON_ARRAY(CONVERT(cust USING utf8mb4), CONVERT(serial USING utf8mb4),
                        CONVERT(op USING utf8mb4), CONVERT(state USING utf8mb4)));
            END IF;
        END IF;
    END LOOP;
    CLOSE page;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, cust, serial, op, locks, steps, filed, decided),
        named = CONCAT('[', named, ']');
END;

-- Removes finished trades with everything that belongs to them: both rows, their history, the
-- evidence and what operators decided, in one transaction.  With `only_counts` it removes nothing,
-- and says what it would have removed.
CREATE OR REPLACE PROCEDURE tl_purge_trades(IN only_counts TINYINT,
    IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE named LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

    CALL tl_purge_page(IF(only_counts, 0, 1), older_ms, most, after_cust, after_serial, after_op,
        purged, named);
END;

-- Names the trades of a page that may go, so that their rows can be written to an archive first.
-- Nothing is removed, and nothing stays locked.
CREATE OR REPLACE PROCEDURE tl_purge_named(IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin,
    OUT named LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
CALL tl_purge_page(2, older_ms, most, after_cust, after_serial, after_op, purged, named);

-- Removes trades that were named and whose rows are in an archive since, in one transaction.  Each
-- is judged anew, and goes only if it still is what was named: a row that changed, evidence or a
-- decision that came meanwhile is not in the archive, so that trade stays.  A trade that is gone
-- already, after a purge that was cut off, is stepped over.
CREATE OR REPLACE PROCEDURE tl_purge_archived(IN older_ms BIGINT UNSIGNED,
    IN named LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen INT UNSIGNED DEFAULT 0;
    DECLARE locks, steps, filed, decided INT UNSIGNED DEFAULT 0;
    DECLARE its_locks, its_steps, its_filed, its_decided INT UNSIGNED;
    DECLARE finished TINYINT DEFAULT 0;
    DECLARE state VARCHAR(127) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE cut DATETIME(6) DEFAULT tl_purge_cut(older_ms);
    DECLARE cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    DECLARE serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    DECLARE op VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    DECLARE page CURSOR FOR
        SELECT n.cust_no, n.serial_no, n.op_code, n.state
        FROM JSON_TABLE(named, '$[*]' COLUMNS (
            cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$[0]',
            serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$[1]',
            op_code VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$[2]',
            state VARCHAR(127) CHARACTER SET ascii COLLATE ascii_bin PATH '$[3]')) n;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET finished = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    OPEN page;
    walk: LOOP
        FETCH page INTO cust, serial, op, state;
        IF finished THEN
            LEAVE walk;
        END IF;
        SET seen = seen + 1;
        CALL tl_purge_trade(2, cut, cust, serial, op, state,
            its_locks, its_steps, its_filed, its_decided);
        IF state IS NOT NULL THEN
            SET removed = removed + 1, locks = locks + its_locks, steps = steps + its_steps,
                filed = filed + its_filed, decided = decided + its_decided;
        END IF;
    END LOOP;
    CLOSE page;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, cust, serial, op, locks, steps, filed, decided);
END;

-- The same for programs that know no more, which read the first five words.
CREATE OR REPLACE PROCEDURE tl_purge(IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    CALL tl_purge_trades(0, older_ms, most, after_cust, after_serial, after_op, purged);
    SET purged = SUBSTRING_INDEX(purged, ' ', 5);
END;

-- Removes lease mutexes that are unlocked, or whose hold is over, if nothing happened for that
-- time.  An ask at the same moment meets the row's lock, and answers busy.
CREATE OR REPLACE PROCEDURE tl_purge_mutexes(IN only_counts TINYINT,
    IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe, steps INT UNSIGNED DEFAULT 0;
    DECLARE finished TINYINT DEFAULT 0;
    DECLARE cut DATETIME(6) DEFAULT tl_purge_cut(older_ms);
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
            SELECT steps + COUNT(*) INTO steps FROM resource_log WHERE resource = name;
            IF NOT only_counts THEN
                DELETE FROM resource_lock WHERE resource = name;
                DELETE FROM resource_log WHERE resource = name;
            END IF;
            SET removed = removed + 1;
        END IF;
    END LOOP;
    CLOSE page;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, name, steps);
END;

CREATE OR REPLACE PROCEDURE tl_purge_resources(IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    CALL tl_purge_mutexes(0, older_ms, most, after_name, purged);
    SET purged = SUBSTRING_INDEX(purged, ' ', 3);
END;

-- Removes read-write locks: a gate that nobody has locked, with its holders' rows, if all of them
-- were free for that time (the janitor frees dead ones).  This has the gate, so nothing is granted
-- meanwhile.  An ask that waits for the gate finds it gone, and makes it anew.
CREATE OR REPLACE PROCEDURE tl_purge_rw_locks(IN only_counts TINYINT,
    IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe, in_use, steps INT UNSIGNED DEFAULT 0;
    DECLARE finished TINYINT DEFAULT 0;
    DECLARE cut DATETIME(6) DEFAULT tl_purge_cut(older_ms);
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
            SELECT steps + COUNT(*) INTO steps FROM resource_holder_log WHERE resource = name;
            IF NOT only_counts THEN
                DELETE FROM resource_holder WHERE resource = name;
                DELETE FROM resource_holder_log WHERE resource = name;
                DELETE FROM rw_lock WHERE resource = name;
            END IF;
            SET removed = removed + 1;
        END IF;
    END LOOP;
    CLOSE page;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, name, steps);
END;

CREATE OR REPLACE PROCEDURE tl_purge_rw(IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    CALL tl_purge_rw_locks(0, older_ms, most, after_name, purged);
    SET purged = SUBSTRING_INDEX(purged, ' ', 3);
END;

-- Removes sessions that had ended and were swept before the time given.  By then the janitor had
-- opened the trades that they held.  A row may still name such a session: a lease mutex that nobody
-- has taken over, or a row that a dead process commits late.  A session that is gone means the same
-- as an ended one, so no table has to be searched for holders.  Permits of sessions that are gone
-- count for nothing, and go with them, each by its key.
CREATE OR REPLACE PROCEDURE tl_purge_sessions(IN older_ms BIGINT UNSIGNED,
    IN most INT UNSIGNED, OUT purged INT UNSIGNED)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE cut DATETIME(6) DEFAULT tl_purge_cut(older_ms);

    DELETE FROM tl_session
    WHERE swept_at < cut AND ended_at < cut
    ORDER BY swept_at, ended_at
    LIMIT most;
    SET purged = ROW_COUNT();
    FOR lost IN (SELECT p.channel, p.op_code, p.session_id
        FROM trade_channel_permit p FORCE INDEX (PRIMARY)
        LEFT JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = p.session_id
        WHERE s.session_id IS NULL LIMIT most) DO
        DELETE FROM trade_channel_permit
        WHERE channel = lost.channel AND op_code = lost.op_code AND session_id = lost.session_id;
    END FOR;
END;

-- How many sessions that would remove in all.
CREATE OR REPLACE PROCEDURE tl_purge_sessions_count(IN older_ms BIGINT UNSIGNED,
    OUT purged INT UNSIGNED)
READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE cut DATETIME(6) DEFAULT tl_purge_cut(older_ms);

    SELECT COUNT(*) INTO purged FROM tl_session
    WHERE swept_at < cut AND ended_at < cut;
END;

-- A release in a group (resource_group.sql) changes the row that was granted; if the row is gone,
-- the lock is lost, and no row is made.  The trigger runs after the INSERT, since one before it
-- would also run for every row that is there already.
CREATE OR REPLACE TRIGGER resource_lock_inserted AFTER INSERT ON resource_lock
FOR EACH ROW
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

-- A refused ask changes nothing: rev stays, and history gets no step.  If SQL typed by hand lowered
-- rev, or made it NULL, it is counted here instead.
CREATE OR REPLACE TRIGGER resource_lock_updated BEFORE UPDATE ON resource_lock
FOR EACH ROW
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

-- Runs after the row was changed, so that history has what is there: the values that the trigger
-- above is given may still be cut or refused.
CREATE OR REPLACE TRIGGER resource_lock_logged AFTER UPDATE ON resource_lock
FOR EACH ROW
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

CREATE OR REPLACE TRIGGER resource_lock_deleted AFTER DELETE ON resource_lock
FOR EACH ROW
INSERT INTO resource_log
VALUES (OLD.resource, OLD.rev + 1,
    SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
    'deleted', OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token, OLD.fence,
    OLD.lease_until, OLD.max_hold_until, OLD.free_at, OLD.remark, OLD.actor, USER());

-- Whether a step with this token was ever committed.  The application has no other right on this
-- history.
CREATE OR REPLACE FUNCTION tl_resource_token_seen(
    name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    wanted BINARY(16)) RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN EXISTS (SELECT 1 FROM resource_log WHERE resource = name AND token = wanted);

-- The state of a row now:
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

-- What tells one server from another: a copy that was promoted or restored elsewhere has
-- another host, id or directory.
CREATE OR REPLACE FUNCTION tl_identity()
RETURNS VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
NO SQL SQL SECURITY INVOKER
RETURN CONCAT_WS(' ', @@hostname, @@server_id, @@datadir);

-- Whether a restore is open: steps may be missing in this database, and nobody has accepted that.
-- Everybody asks this function.
CREATE OR REPLACE FUNCTION tl_restored() RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN COALESCE((SELECT restore_no <> accepted_no OR restored_at IS NOT NULL
    OR COALESCE(identity <> CONCAT_WS(' ', @@hostname, @@server_id, @@datadir), 0)
    FROM tl_schema WHERE one = 1), 1);

-- Checks each step of a restore, also one that is typed by hand.  A step that opens a restore gets
-- the next number.  A proposal is about the open restore, and somebody else confirms it, on the
-- same server.
CREATE OR REPLACE TRIGGER tl_restore_inserted BEFORE INSERT ON tl_restore
FOR EACH ROW
BEGIN
    DECLARE last_no, done_no BIGINT UNSIGNED;
    DECLARE known, proposed_on VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE proposer VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

    SELECT restore_no, accepted_no, identity INTO last_no, done_no, known
    FROM tl_schema WHERE one = 1 FOR UPDATE;
    SET NEW.was = known, NEW.identity = tl_identity();
    IF NEW.step = 'promoted' THEN
        IF known IS NULL OR known = tl_identity() THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'this server is the accepted one, so it is not promoted';
        END IF;
        IF CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF')
            OR (SELECT variable_value FROM information_schema.global_status
                WHERE variable_name = 'SLAVES_RUNNING') <> '0' THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'this server is read-only or still replicates';
        END IF;
    END IF;
    IF NEW.step = 'proved' THEN
        IF NEW.restore_no <> done_no OR EXISTS (SELECT 1 FROM tl_restore
            WHERE restore_no = NEW.restore_no AND step IN ('confirmed', 'proved')) THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'only the procedure writes that a server was accepted by itself';
        END IF;
    ELSEIF NEW.step IN ('declared', 'found', 'promoted') THEN
        SET NEW.restore_no = last_no + 1;
    ELSEIF NEW.step = 'fenced' THEN
        SET NEW.restore_no = last_no;
        IF last_no = done_no OR NOT EXISTS (SELECT 1 FROM tl_restore WHERE restore_no = last_no
            AND step = 'promoted' AND identity = tl_identity()) THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'the server before is said to be off once this one is promoted';
        END IF;
    ELSE
        IF tl_account_name(NEW.account) IS NULL THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'an operator has an account with a name';
        END IF;
        IF last_no = done_no OR NEW.restore_no <> last_no THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'no such restore is declared or found';
        END IF;
    END IF;
    IF NEW.step = 'confirmed' THEN
        SELECT MAX(account), MAX(identity) INTO proposer, proposed_on
        FROM tl_restore WHERE restore_no = NEW.restore_no AND step = 'proposed';
        IF proposer IS NULL THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'nothing was proposed that could be confirmed';
        END IF;
        IF tl_account_name(proposer) = tl_account_name(NEW.account) THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'whoever proposed a decision cannot confirm it';
        END IF;
        IF proposed_on <> NEW.identity THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'it was proposed on another server';
        END IF;
    END IF;
END;

CREATE OR REPLACE TRIGGER tl_restore_opened AFTER INSERT ON tl_restore
FOR EACH ROW
BEGIN
    IF NEW.step IN ('declared', 'found', 'promoted') THEN
        UPDATE tl_schema SET restore_no = NEW.restore_no,
            restored_at = COALESCE(restored_at, UTC_TIMESTAMP(6))
        WHERE one = 1;
    END IF;
    -- Those who have to attest: the sessions that have not ended; those that were ended here, since
    -- this server could be written, perhaps by a program that does not say where; and those that
    -- had to attest under an earlier number, and did not, or spoke against this server.
    IF NEW.step = 'promoted' THEN
        INSERT INTO tl_attestation (restore_no, session_id)
        SELECT NEW.restore_no, session_id FROM tl_session
        WHERE ended_at IS NULL
            OR (ended_at > UTC_TIMESTAMP(6) - INTERVAL 7 DAY
                AND COALESCE(ended_on = tl_identity(), 1))
        UNION
        SELECT NEW.restore_no, a.session_id FROM tl_attestation a
        WHERE a.restore_no > (SELECT accepted_no FROM tl_schema WHERE one = 1)
            AND (a.attested_at IS NULL OR a.missing > 0 OR a.kept = 0);
    END IF;
END;

-- A program that finds that the database is not the accepted one calls this.  It writes that down,
-- so each copy that is made of this database knows it too.  Only accepting ends it.  accepted: the
-- last number that the caller saw accepted; if another one was accepted since, the caller looks
-- again.
CREATE OR REPLACE PROCEDURE tl_restore_found(IN accepted BIGINT UNSIGNED,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE last_no, done_no BIGINT UNSIGNED;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    SELECT restore_no, accepted_no INTO last_no, done_no
    FROM tl_schema WHERE one = 1 FOR UPDATE;
    IF done_no = accepted AND (last_no = done_no OR NOT EXISTS (SELECT 1 FROM tl_restore
        WHERE restore_no = last_no AND step IN ('declared', 'found', 'promoted')
            AND identity = tl_identity())) THEN
        INSERT INTO tl_restore (step, reason, account) VALUES ('found', why, USER());
    END IF;
    COMMIT;
END;

-- Accepts a restore, once both halves exist, within the transaction that writes the second one.
--
-- After a restore nobody knows "nothing was sent" or "it was sent once".  So every trade in process
-- is in doubt.  It counts one send more than is recorded, and at least two, so that no decline is
-- taken for that of the only send.  Its last send may be under way for one max_hold, its own or the
-- settings'.  An earlier "no such payment" does not count.
--
-- Every holder is fenced out, also a living one: the lost steps may have armed another send, or
-- given the trade to somebody else, and the holder could take a decline for the end of the only
-- send.  What it learns comes as evidence.  The lane is open, and due.
--
-- Nor does anybody know who held which lease mutex or read-write lock in the lost steps.  So each
-- is taken from its holder.  Every fence goes above all that can have been given, since fences
-- began with the server's microseconds.
--
-- This walks the tables, once, by a decision of two operators.
CREATE OR REPLACE PROCEDURE tl_restore_accept(IN hold_ms BIGINT UNSIGNED, IN thread UUID)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE last_no, done_no, doubted BIGINT UNSIGNED;
    DECLARE decider VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

    IF @@in_transaction = 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a restore is accepted in one transaction';
    END IF;
    SELECT restore_no, accepted_no INTO last_no, done_no
    FROM tl_schema WHERE one = 1 FOR UPDATE;
    SELECT c.actor, c.reason INTO decider, why
    FROM tl_restore p JOIN tl_restore c ON c.restore_no = p.restore_no AND c.step = 'confirmed'
    WHERE p.restore_no = last_no AND p.step = 'proposed'
        AND tl_account_name(p.account) <> tl_account_name(c.account)
        AND p.identity = tl_identity() AND c.identity = tl_identity();
    IF last_no = done_no OR why IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'two operators accept a restore, and they did not';
    END IF;

    UPDATE trade_lock
    SET step = 'restored', thread_no = thread, log_no = NULL, token = RANDOM_BYTES(16),
        fence = fence + 1, rev = rev + 1, sends = GREATEST(sends, 1) + 1,
        longest_hold_ms = LEAST(604800000,
            GREATEST(COALESCE(hold_ms, 0), COALESCE(longest_hold_ms, 604800000))),
        send_until = GREATEST(COALESCE(send_until, UTC_TIMESTAMP(6)),
            UTC_TIMESTAMP(6) + INTERVAL longest_hold_ms * 1000 MICROSECOND),
        session_id = NULL, max_hold_until = NULL, next_run_at = NULL, not_found_since = NULL,
        actor = decider, remark = why, updated_at = UTC_TIMESTAMP(6)
    WHERE lane = 'S' AND status = 'P' AND repeatable = 0;
    SET doubted = ROW_COUNT();
    INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
        token, fence, rev, epoch, next_run_at, remark, actor, created_at, updated_at)
    SELECT s.cust_no, s.serial_no, CONCAT(s.op_code, _ascii '_RETRY'), 'R', 'F', s.step,
        s.thread_no, s.token, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), s.epoch,
        UTC_TIMESTAMP(6), s.remark, s.actor, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
    FROM trade_lock s
    LEFT JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
        AND r.op_code = CONCAT(s.op_code, _ascii '_RETRY' COLLATE ascii_nopad_bin)
    WHERE s.lane = 'S' AND s.status = 'P' AND s.repeatable = 0
        AND NOT COALESCE(r.repeatable = 0 AND r.status = 'F' AND r.epoch = s.epoch
            AND (r.next_run_at IS NOT NULL OR r.parked IS NOT NULL), 0)
    ON DUPLICATE KEY UPDATE
        attempts = IF(trade_lock.epoch = VALUES(epoch) AND trade_lock.status = 'P',
            trade_lock.attempts, 0),
        claims = 0,
        parked = IF(trade_lock.epoch = VALUES(epoch), trade_lock.parked, NULL),
        repeatable = 0, status = 'F', step = VALUES(step), thread_no = VALUES(thread_no),
        log_no = NULL, session_id = NULL, max_hold_until = NULL, token = VALUES(token),
        fence = trade_lock.fence + 1, rev = trade_lock.rev + 1, epoch = VALUES(epoch),
        next_run_at = VALUES(next_run_at), remark = VALUES(remark), actor = VALUES(actor),
        updated_at = VALUES(updated_at);
    UPDATE resource_lock
    SET status = 'U', step = 'restored', thread_no = thread, log_no = NULL,
        session_id = NULL, lease_until = NULL, max_hold_until = NULL,
        token = RANDOM_BYTES(16), fence = GREATEST(fence,
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) + 1,
        rev = rev + 1, remark = why, actor = decider, updated_at = UTC_TIMESTAMP(6);
    UPDATE resource_holder
    SET status = 'F', step = 'restored', thread_no = thread, log_no = NULL,
        session_id = NULL, token = RANDOM_BYTES(16), fence = GREATEST(fence,
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) + 1,
        rev = rev + 1, over_at = NULL, max_hold_until = NULL, remark = why,
        actor = decider, released_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6);
    -- All is looked through again.  The rows stay: a mark that is moved from where it no
    -- longer is must be seen.
    UPDATE trade_lock_low_water
    SET low_water = CAST('1970-01-01' AS DATETIME(6)) + INTERVAL 1 MICROSECOND;
    UPDATE tl_restore SET doubtful = doubted WHERE restore_no = last_no AND step = 'confirmed';
    UPDATE tl_schema
    SET accepted_no = last_no, accepted_at = UTC_TIMESTAMP(6), identity = tl_identity(),
        restored_at = NULL,
        server_identity = CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir)
    WHERE one = 1;
END;

CREATE OR REPLACE TRIGGER resource_holder_inserted AFTER INSERT ON resource_holder
FOR EACH ROW
INSERT INTO resource_holder_log
VALUES (NEW.resource, NEW.slot, NEW.rev,
    SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
    NEW.kind, NEW.status, NEW.step, NEW.thread_no, NEW.log_no, NEW.session_id, NEW.token,
    NEW.fence, NEW.over_at, NEW.remark, NEW.actor, USER());

-- Every step of the library raises rev; a change that does not was typed by hand.
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

-- Runs after the row was changed, so that history has what is there.
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

-- Whether a holder's step with this token was ever committed.  The application has no other right
-- on this history.
CREATE OR REPLACE FUNCTION tl_holder_token_seen(
    name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    number SMALLINT UNSIGNED, wanted BINARY(16))
RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN EXISTS (SELECT 1 FROM resource_holder_log
    WHERE resource = name AND slot = number AND token = wanted);

-- The state of a holder's row now.  A dead one is freed by the janitor, or by the first ask in
-- whose way it is.
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

-- An ending changes the row that was granted; if the row is gone, the lock is lost, and no row is
-- made.  Only whoever moves a slot copies a row that has ended (sql/fleet checks who).
CREATE OR REPLACE TRIGGER trade_lock_inserted AFTER INSERT ON trade_lock
FOR EACH ROW
BEGIN
    IF NEW.step = _ascii 'end' AND @tl_mover IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644, MESSAGE_TEXT = 'no row to end';
    END IF;
END;

-- Keeps what must be true of every change, also of SQL typed by hand.
--
-- A hold begins with a new fence, and ends at max_hold_until by the clock of its own statement:
-- UTC_TIMESTAMP(6) is the moment at which that began, in here too.  So its length is exact, however
-- long the statement waited and whatever the clock did meanwhile.
--
-- While a restore is open, no trade that happens once becomes F, whatever the proof.  Nobody knows
-- of the lost steps that nothing was sent, that the channel does not know the payment, or that the
-- only send was declined.  Only this trigger checks that, and by calling tl_restored(): with a
-- subquery in its place, the server (10.11.19) forgets the definer's rights when a service's
-- account executes a prepared UPDATE of both rows.
CREATE OR REPLACE TRIGGER trade_lock_updated BEFORE UPDATE ON trade_lock
FOR EACH ROW
BEGIN
    -- The library's own steps are through after one short question, failures after two:
    -- each is prepared anew for every row.
    IF NEW.rev > OLD.rev AND NEW.status <> 'F' AND NEW.serial_no = OLD.serial_no
        AND NEW.cust_no = OLD.cust_no AND NEW.op_code = OLD.op_code THEN
        SET NEW.logged_at = SYSDATE(6)
                + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
            NEW.account = USER();
        IF NEW.max_hold_until IS NOT NULL AND NEW.fence <> OLD.fence THEN
            SET NEW.longest_hold_ms = GREATEST(
                IF(NEW.epoch = OLD.epoch, OLD.longest_hold_ms, 0), LEAST(604800000,
                (TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), NEW.max_hold_until) + 999)
                    DIV 1000));
        END IF;
    ELSE
        IF NEW.status = 'F' AND OLD.status = 'P' AND OLD.lane = 'S' AND OLD.repeatable = 0
            AND tl_restored() THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31001,
                MESSAGE_TEXT = 'nothing fails before the restored server is accepted';
        END IF;
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
                AND NEW.amount_minor <=> OLD.amount_minor AND NEW.currency <=> OLD.currency
                AND NEW.batch <=> OLD.batch AND NEW.traceparent <=> OLD.traceparent
                AND (OLD.longest_hold_ms IS NULL
                    OR NEW.longest_hold_ms <=> OLD.longest_hold_ms)
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
                IF NOT (NEW.max_hold_until <=> OLD.max_hold_until
                    AND NEW.send_until <=> OLD.send_until) THEN
                    SET NEW.longest_hold_ms = LEAST(604800000, GREATEST(NEW.longest_hold_ms,
                        COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), GREATEST(
                            COALESCE(NEW.max_hold_until, NEW.send_until),
                            COALESCE(NEW.send_until, NEW.max_hold_until))), 0) DIV 1000 + 1));
                END IF;
            END IF;
        END IF;
        IF NEW.rev > OLD.rev THEN
            SET NEW.logged_at = SYSDATE(6)
                    + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
                NEW.account = USER();
        END IF;
    END IF;
END;

-- Keeps the step that a change replaces, once the change is made: an UPDATE IGNORE that a CHECK
-- refuses leaves nothing behind.  If a unique key refuses it, the server still runs this trigger;
-- the step is then kept early, which does not hinder the next change.  Another step of the same
-- revision (NULL) is refused.  A first step stays in the row.
CREATE OR REPLACE TRIGGER trade_lock_kept AFTER UPDATE ON trade_lock
FOR EACH ROW
BEGIN
    IF NEW.rev <> OLD.rev AND NOT (OLD.rev <=> OLD.first_rev) THEN
        INSERT INTO trade_lock_past (cust_no, serial_no, op_code, rev, logged_at, step,
            status, thread_no, log_no, session_id, token, fence, epoch, attempts, claims, sends,
            send_until, max_hold_until, next_run_at, parked, conflict, proof, channel_key,
            channel_ref, remark, actor, account, longest_hold_ms)
        VALUES (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.rev, OLD.logged_at, OLD.step,
            OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token, OLD.fence,
            OLD.epoch, OLD.attempts, OLD.claims, OLD.sends, OLD.send_until,
            OLD.max_hold_until, OLD.next_run_at, OLD.parked, OLD.conflict, OLD.proof,
            OLD.channel_key, OLD.channel_ref, OLD.remark, OLD.actor, OLD.account,
            OLD.longest_hold_ms)
        ON DUPLICATE KEY UPDATE rev = IF(token = VALUES(token), rev, NULL);
    END IF;
END;

-- Removing a row is a step too, the last one of its life.  Purging removes the history afterwards.
CREATE OR REPLACE TRIGGER trade_lock_deleted AFTER DELETE ON trade_lock
FOR EACH ROW
BEGIN
    IF OLD.first_rev < OLD.rev THEN
        INSERT INTO trade_lock_past (cust_no, serial_no, op_code, rev, logged_at, step,
            status, thread_no, log_no, session_id, token, fence, epoch, attempts, claims, sends,
            send_until, max_hold_until, next_run_at, parked, conflict, proof, channel_key,
            channel_ref, remark, actor, account, longest_hold_ms)
        VALUES (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.first_rev, OLD.first_logged_at,
                'ask', 'P', OLD.first_thread_no, OLD.first_log_no, OLD.first_session_id,
                OLD.first_token, OLD.first_rev, 1, 0, 0, OLD.first_sends,
                IF(OLD.first_sends > 0, OLD.first_max_hold_until, NULL),
                OLD.first_max_hold_until, OLD.first_next_run_at, NULL, 0, '-',
                OLD.first_channel_key, NULL, NULL, NULL, OLD.first_account,
                (TIMESTAMPDIFF(MICROSECOND, OLD.created_at, OLD.first_max_hold_until) + 999)
                    DIV 1000);
    END IF;
    INSERT INTO trade_lock_past (cust_no, serial_no, op_code, rev, logged_at, step,
        status, thread_no, log_no, session_id, token, fence, epoch, attempts, claims, sends,
        send_until, max_hold_until, next_run_at, parked, conflict, proof, channel_key,
        channel_ref, remark, actor, account, longest_hold_ms)
    VALUES (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.rev, OLD.logged_at, OLD.step,
        OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token, OLD.fence,
        OLD.epoch, OLD.attempts, OLD.claims, OLD.sends, OLD.send_until,
        OLD.max_hold_until, OLD.next_run_at, OLD.parked, OLD.conflict, OLD.proof,
        OLD.channel_key, OLD.channel_ref, OLD.remark, OLD.actor, OLD.account,
        OLD.longest_hold_ms),
        (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.rev + 1,
            SYSDATE(6)
                + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
            'deleted', OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token,
            OLD.fence, OLD.epoch, OLD.attempts, OLD.claims, OLD.sends, OLD.send_until,
            OLD.max_hold_until, OLD.next_run_at, OLD.parked, OLD.conflict, OLD.proof,
            OLD.channel_key, OLD.channel_ref, OLD.remark, OLD.actor, USER(),
            OLD.longest_hold_ms)
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
    NULL AS channel_ref, NULL AS remark, NULL AS actor, first_account AS account,
    (TIMESTAMPDIFF(MICROSECOND, created_at, first_max_hold_until) + 999) DIV 1000
        AS longest_hold_ms
FROM trade_lock WHERE first_rev < rev;

-- Every committed step of every row: those in between, the first ones, and the rows as they are.  A
-- read by cust_no and serial_no reads only the few rows of a trade.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW trade_lock_log AS
SELECT cust_no, serial_no, op_code, rev, logged_at, step, status, thread_no, log_no,
    session_id, token, fence, epoch, attempts, claims, sends, send_until, max_hold_until,
    next_run_at, parked, conflict, proof, channel_key, channel_ref, remark, actor, account,
    longest_hold_ms
FROM trade_lock_past
UNION ALL
SELECT cust_no, serial_no, op_code, rev, logged_at, step, status, thread_no, log_no,
    session_id, token, fence, epoch, attempts, claims, sends, send_until, max_hold_until,
    next_run_at, parked, conflict, proof, channel_key, channel_ref, remark, actor, account,
    longest_hold_ms
FROM trade_lock_first
UNION ALL
SELECT cust_no, serial_no, op_code, rev, logged_at, step, status, thread_no, log_no,
    session_id, token, fence, epoch, attempts, claims, sends, send_until, max_hold_until,
    next_run_at, parked, conflict, proof, channel_key, channel_ref, remark, actor, account,
    longest_hold_ms
FROM trade_lock;

-- Whether a step with this token was ever committed.  The application has no other right on
-- history. It reads the row first and history second, since a step moves from the row to history.
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

-- The state of every row now.  The library, the command and a person with a SQL prompt all read it
-- here.
--   alive: the holder's session lives and its max_hold is not over
--   state: of a sync row live, working, in doubt, queued, parked, failed,
--          succeeded;
--          of a retry row working, waiting, parked, closed, succeeded
-- A retry row of an older epoch counts as absent, and so does a standalone one.  A finished trade
-- still names its last session and next moment, but nobody holds it.
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

CALL tl_record_holds();

UPDATE tl_schema SET version = GREATEST(version, 22) WHERE one = 1;
