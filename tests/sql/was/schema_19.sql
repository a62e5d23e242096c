-- What 'tradelock migrate' of schema 19 ran after schema_8.sql: its migrations, and its objects.
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

CREATE OR REPLACE PROCEDURE tl_act_end(IN act BIGINT UNSIGNED,
    IN sums VARCHAR(1023) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
UPDATE tl_act SET ended_at = UTC_TIMESTAMP(6), counts = sums
WHERE act_no = act AND ended_at IS NULL AND tl_account_name(account) = tl_account_name(USER());

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
    IF NOT COALESCE(EXISTS (SELECT 1 FROM trade_channel
        WHERE channel = name AND (op = '' OR op_code = op)), 0) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'no workflow has registered this channel and operation';
    END IF;
    INSERT IGNORE INTO trade_channel (channel, op_code) VALUES (name, op);
END;

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
        SELECT COALESCE(SUM(s.ended_at IS NULL AND p.wanted > p.permits), 0),
            COALESCE(SUM(s.ended_at IS NULL AND p.wanted > 0), 0)
            INTO short, takers
            FROM trade_channel_permit p FORCE INDEX (PRIMARY)
            LEFT JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = p.session_id
            WHERE p.channel = name AND p.op_code = op AND p.session_id <> own
                AND s.session_id IS NOT NULL AND (s.ended_at IS NULL
                    OR s.ended_at + INTERVAL p.hold_ms * 1000 MICROSECOND >= now_at);
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

CREATE OR REPLACE FUNCTION tl_moment()
RETURNS DATETIME(6) NOT DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND;

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

CREATE OR REPLACE TRIGGER trade_evidence_inserted BEFORE INSERT ON trade_evidence
FOR EACH ROW
SET NEW.account = USER(), NEW.filed_at = SYSDATE(6)
        + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND;

CREATE OR REPLACE TRIGGER trade_evidence_filed AFTER INSERT ON trade_evidence
FOR EACH ROW
BEGIN
    DECLARE now_status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE own, success, contradicts, doubted TINYINT DEFAULT 0;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET now_status = NULL;

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

CREATE OR REPLACE FUNCTION tl_account_name(
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN NULLIF(LEFT(account, CHAR_LENGTH(account) - LOCATE('@', REVERSE(account))), '');

CREATE OR REPLACE TRIGGER trade_resolution_inserted BEFORE INSERT ON trade_resolution
FOR EACH ROW
BEGIN
    DECLARE proposer VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
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

CREATE OR REPLACE TRIGGER trade_resolution_confirmed AFTER INSERT ON trade_resolution
FOR EACH ROW
BEGIN
    DECLARE step_token BINARY(16) DEFAULT RANDOM_BYTES(16);
    DECLARE retry_op VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT CONCAT(NEW.op_code, _ascii '_RETRY');
    DECLARE changed INT DEFAULT 1;
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
BEGIN
    DECLARE proposer VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
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

CREATE OR REPLACE PROCEDURE tl_purge_trades(IN only_counts TINYINT,
    IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe, in_use INT UNSIGNED DEFAULT 0;
    DECLARE locks, steps, filed, decided INT UNSIGNED DEFAULT 0;
    DECLARE finished TINYINT DEFAULT 0;
    DECLARE cut DATETIME(6) DEFAULT tl_purge_cut(older_ms);
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
            SELECT locks + COUNT(*) INTO locks FROM trade_lock
            WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
            SELECT steps + COUNT(*) INTO steps FROM trade_lock_past
            WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
            SELECT filed + COUNT(*) INTO filed FROM trade_evidence
            WHERE cust_no = cust AND serial_no = serial AND op_code = op;
            SELECT decided + COUNT(*) INTO decided FROM trade_resolution
            WHERE cust_no = cust AND serial_no = serial AND op_code = op;
            IF NOT only_counts THEN
                DELETE FROM trade_lock
                WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
                DELETE FROM trade_lock_past
                WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
                DELETE FROM trade_evidence
                WHERE cust_no = cust AND serial_no = serial AND op_code = op;
                DELETE FROM trade_resolution
                WHERE cust_no = cust AND serial_no = serial AND op_code = op;
            END IF;
            SET removed = removed + 1;
        END IF;
    END LOOP;
    CLOSE page;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, cust, serial, op, locks, steps, filed, decided);
END;

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
END;

CREATE OR REPLACE PROCEDURE tl_purge_sessions_count(IN older_ms BIGINT UNSIGNED,
    OUT purged INT UNSIGNED)
READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE cut DATETIME(6) DEFAULT tl_purge_cut(older_ms);

    SELECT COUNT(*) INTO purged FROM tl_session
    WHERE swept_at < cut AND ended_at < cut;
END;

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

CREATE OR REPLACE FUNCTION tl_resource_token_seen(
    name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    wanted BINARY(16)) RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN EXISTS (SELECT 1 FROM resource_log WHERE resource = name AND token = wanted);

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

CREATE OR REPLACE FUNCTION tl_identity()
RETURNS VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
NO SQL SQL SECURITY INVOKER
RETURN CONCAT_WS(' ', @@hostname, @@server_id, @@datadir);

CREATE OR REPLACE FUNCTION tl_restored() RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN COALESCE((SELECT restore_no <> accepted_no OR restored_at IS NOT NULL
    OR COALESCE(identity <> CONCAT_WS(' ', @@hostname, @@server_id, @@datadir), 0)
    FROM tl_schema WHERE one = 1), 1);

CREATE OR REPLACE TRIGGER tl_restore_inserted BEFORE INSERT ON tl_restore
FOR EACH ROW
BEGIN
    DECLARE last_no, done_no BIGINT UNSIGNED;
    DECLARE known, proposed_on VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE proposer VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

    SELECT restore_no, accepted_no, identity INTO last_no, done_no, known
    FROM tl_schema WHERE one = 1 FOR UPDATE;
    SET NEW.was = known, NEW.identity = tl_identity();
    IF NEW.step IN ('declared', 'found') THEN
        SET NEW.restore_no = last_no + 1;
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
    IF NEW.step IN ('declared', 'found') THEN
        UPDATE tl_schema SET restore_no = NEW.restore_no,
            restored_at = COALESCE(restored_at, UTC_TIMESTAMP(6))
        WHERE one = 1;
    END IF;
END;

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
        WHERE restore_no = last_no AND step IN ('declared', 'found')
            AND identity = tl_identity())) THEN
        INSERT INTO tl_restore (step, reason, account) VALUES ('found', why, USER());
    END IF;
    COMMIT;
END;

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

CREATE OR REPLACE FUNCTION tl_holder_token_seen(
    name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    number SMALLINT UNSIGNED, wanted BINARY(16))
RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN EXISTS (SELECT 1 FROM resource_holder_log
    WHERE resource = name AND slot = number AND token = wanted);

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

CREATE OR REPLACE TRIGGER trade_lock_inserted AFTER INSERT ON trade_lock
FOR EACH ROW
BEGIN
    IF NEW.step = _ascii 'end' THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644, MESSAGE_TEXT = 'no row to end';
    END IF;
END;

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

UPDATE tl_schema SET version = GREATEST(version, 19) WHERE one = 1;
