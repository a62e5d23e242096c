-- What 'tradelock migrate' of schema 11 ran after schema_8.sql.
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

-- What tells one server from another: a copy that was promoted or restored elsewhere has
-- another host, id or directory.
CREATE OR REPLACE FUNCTION tl_identity()
RETURNS VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
NO SQL SQL SECURITY INVOKER
RETURN CONCAT_WS(' ', @@hostname, @@server_id, @@datadir);

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

-- Typed by hand or by the command: what opens a restore gets the next number; a proposal is
-- about the one that is open, and is confirmed by somebody else, on the same server.
CREATE OR REPLACE TRIGGER tl_restore_inserted BEFORE INSERT ON tl_restore FOR EACH ROW
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
CREATE OR REPLACE TRIGGER tl_restore_opened AFTER INSERT ON tl_restore FOR EACH ROW
BEGIN
    IF NEW.step IN ('declared', 'found') THEN
        UPDATE tl_schema SET restore_no = NEW.restore_no,
            restored_at = COALESCE(restored_at, UTC_TIMESTAMP(6))
        WHERE one = 1;
    END IF;
END;
-- What an older program declared stays declared.  In two statements, since the trigger writes
-- what the first one reads.
SET @tl_declared = (SELECT restored_at IS NOT NULL AND restore_no = accepted_no
    FROM tl_schema WHERE one = 1);
INSERT INTO tl_restore (step, reason, account)
SELECT 'declared', 'before restores had a record', USER() FROM DUAL WHERE @tl_declared = 1;

-- Whether steps may be missing in this database, and nobody has accepted that: the only
-- place that says so.
CREATE OR REPLACE FUNCTION tl_restored() RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN COALESCE((SELECT restore_no <> accepted_no OR restored_at IS NOT NULL
    OR COALESCE(identity <> CONCAT_WS(' ', @@hostname, @@server_id, @@datadir), 0)
    FROM tl_schema WHERE one = 1), 1);

-- Whoever finds that the database is not the one that was accepted writes it down, so that
-- it is known to each copy that is made of this one.  Only accepting ends it.  accepted: the
-- last number that whoever calls saw accepted; when another one was since, it looks again.
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

-- Accepting, once both halves exist; within the transaction that writes the second one.
-- After a restore neither "nothing was sent" nor "it was sent once" is known of anything any
-- more: every trade in process is one in doubt that was sent for once more than is recorded,
-- and twice at least, so that no decline is taken for that of the only send; and whose last
-- send may be under way for one max_hold, its own or the settings'; a "no such
-- payment" of earlier does not count.  Every holder is fenced out, the living too: what it
-- may have armed, or who may have taken over from it, is in what was lost, so it could take
-- a decline for the end of the only send.  What it learns comes as evidence; its lane is
-- open, and due.
-- Who held which mutex or read-write lock in what was lost nobody knows either: each is
-- taken from its holder, and every fence goes above all that can have been given since it
-- began with the server's microseconds.
-- Walks the tables, once, by a decision of two operators.
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
        send_until = GREATEST(COALESCE(send_until, UTC_TIMESTAMP(6)),
            UTC_TIMESTAMP(6) + INTERVAL GREATEST(COALESCE(hold_ms, 0) * 1000, LEAST(604800000000, GREATEST(
                COALESCE(TIMESTAMPDIFF(MICROSECOND, created_at, first_max_hold_until), 0),
                COALESCE(TIMESTAMPDIFF(MICROSECOND, updated_at, max_hold_until), 0))))
                MICROSECOND),
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

-- While a restore is open no trade that happens once becomes F, whoever says so and however:
-- that nothing was sent, that the channel does not know the payment, that the only send was
-- declined, none of it is known of what was lost.  Asked of nobody else, and by the function:
-- with a subquery in its place the server (10.11.19) forgets the definer's rights when a
-- service's account executes a prepared UPDATE of both rows.
CREATE OR REPLACE TRIGGER trade_lock_updated BEFORE UPDATE ON trade_lock FOR EACH ROW
BEGIN
    -- The library's own steps are through after one short question, failures after two:
    -- each is prepared anew for every row.
    IF NEW.rev > OLD.rev AND NEW.status <> 'F' AND NEW.serial_no = OLD.serial_no
        AND NEW.cust_no = OLD.cust_no AND NEW.op_code = OLD.op_code THEN
        SET NEW.logged_at = SYSDATE(6)
                + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
            NEW.account = USER();
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

-- A payment that the channel made and that has no row here any more: success of a trade
-- whose row went with what was lost, as a web-hook, a statement or an operator knows it.  The
-- row is made as a success, so that nobody is granted it again; what else was lost with it
-- (contents, business rows) nobody knows here.  The evidence stands in the same transaction.
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

UPDATE tl_schema SET version = GREATEST(version, 9) WHERE one = 1;
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

-- Many processes see one step: whoever knew of as many as there are records it.  Janitors
-- look through everything again: a row may since have been written before their marks.  Each
-- step has a beginning of its own for these, so that a janitor who read one before, and is
-- late, does not move it.
CREATE OR REPLACE PROCEDURE tl_clock_stepped(IN known INT UNSIGNED, IN size BIGINT,
    IN before_us BIGINT UNSIGNED,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE recorded INT UNSIGNED;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    SELECT steps INTO recorded FROM tl_clock WHERE one = 1 FOR UPDATE;
    IF recorded = known THEN
        INSERT INTO tl_clock_step (step_no, size_us, earliest_at, noticed_at, actor, account)
        VALUES (known + 1, size, UTC_TIMESTAMP(6) - INTERVAL before_us MICROSECOND,
            UTC_TIMESTAMP(6), who, USER());
        UPDATE tl_clock SET steps = known + 1 WHERE one = 1;
        UPDATE trade_lock_low_water SET low_water =
            CAST('1970-01-01' AS DATETIME(6)) + INTERVAL known + 2 MICROSECOND;
    END IF;
    COMMIT;
END;

-- One page of the rows in the order of their key learns of the oldest step that is not
-- settled, each row once, whoever dies in between: how far it has come is written with the
-- rows.  In `settled`: how many steps are left, how many rows were changed, and 0 when another
-- process is at it.
--   A trade in process: its last send may be under way for one hold from now, and "no such
-- payment" is counted anew.  Of a clock that was set back the deadline comes as much
-- earlier, so that it is no later than it was; it never comes later.  A holder has its hold.
--   A lane that waits for a moment of a clock that was set back waits for as much less, and
-- is due where it is not certain by which clock it was written.
CREATE OR REPLACE PROCEDURE tl_clock_settle(IN most INT UNSIGNED, IN thread UUID,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    OUT settled VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE due, done INT UNSIGNED DEFAULT NULL;
    DECLARE rows_changed INT UNSIGNED DEFAULT 0;
    DECLARE mine TINYINT DEFAULT 1;
    DECLARE size BIGINT DEFAULT 0;
    DECLARE since DATETIME(6);
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
        SELECT s.size_us, s.earliest_at INTO size, since
            FROM tl_clock_step s WHERE s.step_no = done + 1;
        -- By which clock a row was written is certain of rows from before the step, while it
        -- is the only one.
        IF done + 1 < due THEN
            SET since = CAST('1970-01-01' AS DATETIME(6));
        END IF;
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
            send_until = IF(send_until IS NULL, NULL, UTC_TIMESTAMP(6)
                + INTERVAL tl_hold_us(created_at, first_max_hold_until, updated_at,
                    max_hold_until, send_until, since) MICROSECOND),
            max_hold_until = IF(max_hold_until IS NULL, NULL, UTC_TIMESTAMP(6)
                + INTERVAL tl_hold_us(created_at, first_max_hold_until, updated_at,
                    max_hold_until, NULL, since) MICROSECOND),
            next_run_at = IF(next_run_at IS NULL, NULL, GREATEST(max_hold_until, SYSDATE(6)
                + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND
                + INTERVAL 5 SECOND)),
            updated_at = UTC_TIMESTAMP(6)
        WHERE cust_no >= cust AND (cust_no > cust OR (cust_no = cust
                AND (serial_no > serial OR (serial_no = serial AND op_code > op))))
            AND (last_cust IS NULL OR (cust_no <= last_cust AND (cust_no < last_cust
                OR serial_no < last_serial
                OR (serial_no = last_serial AND op_code <= last_op))))
            AND lane = 'S' AND status = 'P' AND repeatable = 0;
        SET rows_changed = ROW_COUNT();
        IF size < 0 THEN
            UPDATE trade_lock FORCE INDEX (PRIMARY)
            SET step = 'clock', thread_no = thread, actor = who, rev = rev + 1,
                next_run_at = IF(updated_at < since,
                    next_run_at + INTERVAL size MICROSECOND, UTC_TIMESTAMP(6)),
                updated_at = UTC_TIMESTAMP(6)
            WHERE cust_no >= cust AND (cust_no > cust OR (cust_no = cust
                    AND (serial_no > serial OR (serial_no = serial AND op_code > op))))
                AND (last_cust IS NULL OR (cust_no <= last_cust AND (cust_no < last_cust
                    OR serial_no < last_serial
                    OR (serial_no = last_serial AND op_code <= last_op))))
                AND lane = 'R' AND status = 'F' AND next_run_at > UTC_TIMESTAMP(6);
            SET rows_changed = rows_changed + ROW_COUNT();
        END IF;
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

-- The longest that a trade was ever held for, as its row tells it, at most the longest that
-- there is.  What was left of the last send when the row was written counts where one clock
-- wrote both.
CREATE OR REPLACE FUNCTION tl_hold_us(made DATETIME(6), first_until DATETIME(6),
    written DATETIME(6), held_until DATETIME(6), sent_until DATETIME(6), since DATETIME(6))
RETURNS BIGINT NOT DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN LEAST(604800000000, GREATEST(0,
    COALESCE(TIMESTAMPDIFF(MICROSECOND, made, first_until), 0),
    COALESCE(TIMESTAMPDIFF(MICROSECOND, written, held_until), 0),
    IF(written < since, COALESCE(TIMESTAMPDIFF(MICROSECOND, written, sent_until), 0), 0)));

-- Before which moment a row is certainly older than that, whatever the clock did since.  A
-- step forward makes rows look older: all that may have come since are taken off.
CREATE OR REPLACE FUNCTION tl_purge_cut(older_ms BIGINT UNSIGNED)
RETURNS DATETIME(6) NOT DETERMINISTIC READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE now_at DATETIME(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE all_us, since_us BIGINT DEFAULT 0;

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
    RETURN now_at - INTERVAL older_ms * 1000 MICROSECOND - INTERVAL since_us MICROSECOND;
END;

-- What follows is 0005, 0006 and 0007 with that cut.
CREATE OR REPLACE PROCEDURE tl_purge(IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe, in_use INT UNSIGNED DEFAULT 0;
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

CREATE OR REPLACE PROCEDURE tl_purge_resources(IN older_ms BIGINT UNSIGNED,
    IN most INT UNSIGNED,
    IN after_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe INT UNSIGNED DEFAULT 0;
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
            DELETE FROM resource_lock WHERE resource = name;
            DELETE FROM resource_log WHERE resource = name;
            SET removed = removed + 1;
        END IF;
    END LOOP;
    CLOSE page;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, name);
END;

CREATE OR REPLACE PROCEDURE tl_purge_rw(IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe, in_use INT UNSIGNED DEFAULT 0;
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

UPDATE tl_schema SET version = GREATEST(version, 10) WHERE one = 1;
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

-- Typed by hand or by the command: a confirmation needs a proposal of somebody else, about
-- the row as it is now; what was not carried out was confirmed.
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

-- The second half carries the decision out, in the same statement: there is no decision
-- without its step, and no such step without both halves.  Each is bound to the revision that
-- both saw.
--   clear   the conflict goes; of a failure the success is forgotten too, or it could never
--           be tried anew
--   paid    the row is P again, without a holder and with the success on it, so that no
--           failure can be written and nothing can be sent; its lane is due, and the
--           workflow's own program ends it as Y together with its business rows.  Another
--           trade of an exclusive customer that is in process refuses it by its unique key
--   failed  it stays P, and its lane is due with all attempts before it: the workflow's own
--           program asks the channel and ends it as F together with its business rows.  From
--           here on nothing is armed (arm.sql).  Never while somebody holds it or could still
--           send, and never against evidence of success
-- The reason is told to operators: in trade_resolution, and on the retry row, which no
-- customer hears of.
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

-- A worker does not carry out what was decided, and says why.  Once; nothing happens where
-- nothing was confirmed.
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

-- Who filed evidence, and when, is the server's to say.
CREATE OR REPLACE TRIGGER trade_evidence_inserted BEFORE INSERT ON trade_evidence
FOR EACH ROW
    SET NEW.account = USER(), NEW.filed_at = SYSDATE(6)
        + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND;

-- What a piece of evidence does to the trade, in the same statement, SQL typed by hand
-- included.  Success of this epoch is remembered; success that contradicts the row, and a
-- payment that is pending though it failed, set the conflict.  Token and fence stay, since the
-- holder is not disturbed.  A waiting or parked lane of this epoch becomes due at once.
CREATE OR REPLACE TRIGGER trade_evidence_filed AFTER INSERT ON trade_evidence
FOR EACH ROW
BEGIN
    DECLARE now_status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE own, success, contradicts, seen TINYINT DEFAULT 0;
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
            seen = own AND now_status = 'P'
                AND NEW.outcome IN ('SUCCEEDED', 'ACCEPTED', 'PENDING');
        IF contradicts OR seen THEN
            UPDATE trade_lock FORCE INDEX (PRIMARY)
            SET step = 'evidence', rev = rev + 1,
                thread_no = COALESCE(NEW.thread_no, thread_no),
                success_epoch = IF(success AND own, epoch, success_epoch),
                conflict = conflict OR contradicts, seen_by_channel = seen_by_channel OR seen,
                actor = NULL, updated_at = UTC_TIMESTAMP(6)
            WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no
                AND op_code = NEW.op_code;
        END IF;
        IF own AND now_status = 'P' THEN
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

-- An operator makes a waiting or parked lane due now.  Both rows in one statement, sync row
-- first; the sync row's fence is the one that the operator saw, and a step that came in
-- between makes this one change nothing.  A row that was parked as poison is run alone once
-- more: claims falls to 1, not to 0.  A lane that was never opened, since the holder died and
-- no janitor has come by, is opened, due at once.  Nothing is decided by it: the worker asks.
CREATE OR REPLACE PROCEDURE tl_operator_retry(
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN seen BIGINT UNSIGNED, IN by_thread UUID, IN by_log UUID, IN step_token BINARY(16),
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE retry_op VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT CONCAT(op, _ascii '_RETRY');
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    IF COALESCE(who, '') = '' OR COALESCE(why, '') = '' THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator says who, and why';
    END IF;
    START TRANSACTION;
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
    IF ROW_COUNT() = 0 THEN
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
    COMMIT;
END;

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

UPDATE tl_schema SET version = GREATEST(version, 11) WHERE one = 1;
