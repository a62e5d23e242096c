-- What tells one server from another: a copy that was promoted or restored elsewhere has
-- another host, id or directory.
CREATE OR REPLACE FUNCTION tl_identity()
RETURNS VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
NO SQL SQL SECURITY INVOKER
RETURN CONCAT_WS(' ', @@hostname, @@server_id, @@datadir);

-- Whether a restore is open: steps may be missing in this database, and nobody has accepted that.
-- Everybody asks this function.
CREATE OR REPLACE FUNCTION tl_restored() RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN COALESCE((SELECT restore_no <> accepted_no
    OR COALESCE(identity <> CONCAT_WS(' ', @@hostname, @@server_id, @@datadir), 0)
    FROM tl_schema WHERE one = 1), 1);

-- Checks each step of a restore, also one that is typed by hand.  A step that opens a restore gets
-- the next number.  A proposal is about the open restore, and somebody else confirms it, on the
-- same server: one who filed no payment of which no trade was here (tl_restore_filed).
CREATE OR REPLACE TRIGGER tl_restore_inserted BEFORE INSERT ON tl_restore
FOR EACH ROW
BEGIN
    DECLARE last_no, done_no BIGINT UNSIGNED;
    DECLARE known, proposed_on VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE proposer, passes_over VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

    CALL tl_guard();
    SELECT restore_no, accepted_no, identity INTO last_no, done_no, known
    FROM tl_schema WHERE one = 1 FOR UPDATE;
    SET NEW.was = known, NEW.identity = tl_identity(), NEW.decided_at = tl_moment();
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
        SET passes_over = tl_passes_over();
        IF passes_over IS NOT NULL THEN
            SET passes_over = CONCAT('this server may lack what was committed before, by ',
                passes_over, ': declare a restore');
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644, MESSAGE_TEXT = passes_over;
        END IF;
    END IF;
    IF NEW.step = 'proved' THEN
        IF NEW.restore_no <> done_no OR EXISTS (SELECT 1 FROM tl_restore
            WHERE restore_no = NEW.restore_no AND step IN ('confirmed', 'proved')) THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'only the procedure writes that a server was accepted by itself';
        END IF;
    ELSEIF NEW.step = 'kept' THEN
        SET NEW.restore_no = done_no;
        IF COALESCE(known <> tl_identity(), 1) OR last_no <> done_no THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'only the accepted server has one that keeps its commits';
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
        IF EXISTS (SELECT 1 FROM trade_evidence_lost
            WHERE tl_account_name(account) = tl_account_name(NEW.account)) THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'whoever filed a payment without a trade does not confirm';
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
    DECLARE done_no BIGINT UNSIGNED;

    IF NEW.step IN ('declared', 'found', 'promoted') THEN
        UPDATE tl_schema SET restore_no = NEW.restore_no WHERE one = 1;
    END IF;
    -- Those who have to attest: the sessions that have not ended; those that were ended here, since
    -- this server could be written, perhaps by SQL that does not say where; and those that
    -- had to attest under an earlier number, and did not, or spoke against this server.
    --
    -- One that was ended here under a lower number than the last accepted one was ended when this
    -- server was itself the accepted one, and not since.  The server that was accepted after that had
    -- its end, so nothing was granted there under that session: it can have been told of no commit
    -- that this server may lack.  If that server did not have the end, it named the session among
    -- those who had to attest: then it lived on there, and is asked.  Both are told by the numbers,
    -- and no clock matters.
    --
    -- Nor is one asked that ended in order on no named server (''): its process was never told of a
    -- commit but by this server itself, before anybody had accepted it, and those are here; or it
    -- only began, and nobody was told of anything under its name.
    IF NEW.step = 'promoted' THEN
        SELECT accepted_no INTO done_no FROM tl_schema WHERE one = 1;
        INSERT INTO tl_attestation (restore_no, session_id)
        SELECT NEW.restore_no, x.session_id FROM tl_session x
        WHERE x.ended_at IS NULL
            OR (x.ended_at > tl_moment() - INTERVAL 7 DAY
                AND COALESCE(x.ended_on = tl_identity(), 1)
                AND (COALESCE(x.ended_no >= done_no, 1) OR EXISTS (SELECT 1 FROM tl_attestation b
                    WHERE b.restore_no = done_no AND b.session_id = x.session_id)))
        UNION
        SELECT NEW.restore_no, a.session_id FROM tl_attestation a
        WHERE a.restore_no > done_no
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

-- Before success of a trade that is not here is filed: only accepting makes that trade, so while a
-- restore is open.  A server that nobody has accepted is put on record with it.  No proposal and no
-- promotion covers it: the next restore begins.  So whoever confirms has filed none of it, and sees
-- all of it.
CREATE OR REPLACE PROCEDURE tl_restore_filed(
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE last_no, done_no BIGINT UNSIGNED;
    DECLARE known VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE its_fleet VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin;

    SELECT restore_no, accepted_no, identity, fleet INTO last_no, done_no, known, its_fleet
    FROM tl_schema WHERE one = 1 FOR UPDATE;
    IF its_fleet IS NOT NULL AND (last_no <> done_no OR COALESCE(known <> tl_identity(), 0)) THEN
        CALL tl_slot_check(cust, 1);
    END IF;
    IF IF(last_no = done_no, COALESCE(known <> tl_identity(), 0), (SELECT COUNT(*) FROM tl_restore
        WHERE restore_no = last_no AND step IN ('proposed', 'promoted') LOCK IN SHARE MODE)) THEN
        INSERT INTO tl_restore (step, reason, account)
        VALUES ('found', 'a payment was filed of which no trade is here', USER());
    END IF;
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
-- Success of a trade that was lost makes the trade, as a success, so that nobody is granted it again;
-- where it tells of more than one payment the trade is in conflict.  What else was lost (contents,
-- business rows) is not known here.  Of one that is in process success is noted.
--
-- Nor does anybody know who held which lease mutex or read-write lock in the lost steps.  So each
-- is taken from its holder.  Every fence goes above all that can have been given, since fences
-- began with the server's microseconds.
--
-- This walks the tables, once, by a decision of two operators.
CREATE OR REPLACE PROCEDURE tl_restore_accept(IN hold_ms BIGINT UNSIGNED, IN thread UUID)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE last_no, done_no, doubted, last_beat BIGINT UNSIGNED;
    DECLARE decider VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE now_at DATETIME(6) DEFAULT tl_moment();

    CALL tl_guard();
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

    FOR lost IN (SELECT MIN(evidence_id) AS first, COUNT(DISTINCT epoch) > 1
            OR COUNT(DISTINCT channel_key) > 1 OR COUNT(DISTINCT tl_bare_ref(channel_ref)) > 1
            OR COUNT(DISTINCT amount_minor) > 1 OR COUNT(DISTINCT currency) > 1 AS differs
        FROM trade_evidence_lost GROUP BY cust_no, serial_no, op_code) DO
        BEGIN
            DECLARE CONTINUE HANDLER FOR 31003 BEGIN END; -- its customer is at another shard by now

            INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
                token, fence, rev, epoch, sends, success_epoch, conflict, channel_key, channel_ref,
                amount_minor, currency, remark, created_at, updated_at)
            SELECT cust_no, serial_no, op_code, 'S', 'Y', 'filed', COALESCE(thread_no, thread),
                RANDOM_BYTES(16), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at),
                TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at), epoch, 1, epoch,
                lost.differs, channel_key, channel_ref, amount_minor, currency,
                'lost in a restore and filed since; its business rows were not booked',
                now_at, now_at
            FROM trade_evidence WHERE evidence_id = lost.first;
        END;
    END FOR;
    UPDATE trade_lock
    SET step = 'restored', thread_no = thread, log_no = NULL, token = RANDOM_BYTES(16),
        fence = fence + 1, rev = rev + 1,
        success_epoch = COALESCE(NULLIF(success_epoch, 0), (SELECT MAX(e.epoch) FROM trade_evidence e
            WHERE e.cust_no = trade_lock.cust_no AND e.serial_no = trade_lock.serial_no
                AND e.op_code = trade_lock.op_code AND e.epoch = trade_lock.epoch
                AND e.outcome = 'SUCCEEDED' AND e.contradicts = 0
                AND COALESCE(e.channel_key = trade_lock.channel_key, 1))),
        sends = LEAST(GREATEST(sends, 1) + 1, 4294967295),
        longest_hold_ms = LEAST(604800000,
            GREATEST(COALESCE(hold_ms, 0), COALESCE(longest_hold_ms, 604800000))),
        send_until = GREATEST(COALESCE(send_until, tl_moment()),
            tl_moment() + INTERVAL longest_hold_ms * 1000 MICROSECOND),
        session_id = NULL, max_hold_until = NULL, next_run_at = NULL, not_found_since = NULL,
        actor = decider, remark = why, updated_at = now_at
    WHERE lane = 'S' AND status = 'P' AND repeatable = 0;
    SET doubted = ROW_COUNT();
    INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
        token, fence, rev, epoch, next_run_at, remark, actor, created_at, updated_at)
    SELECT s.cust_no, s.serial_no, CONCAT(s.op_code, _ascii '_RETRY'), 'R', 'F', s.step,
        s.thread_no, s.token, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at),
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at), s.epoch,
        now_at, s.remark, s.actor, now_at, now_at
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
    -- Only of sessions whose beats were passed over: this may take long, heartbeats go on meanwhile,
    -- and one that waited here would find another row than it saw, and leave it behind.
    FOR r IN (SELECT x.session_id FROM tl_session x
        LEFT JOIN tl_beat b ON b.session_id = x.session_id AND b.beat = x.beat
        WHERE b.session_id IS NULL) DO
        SELECT beat INTO last_beat FROM tl_session WHERE session_id = r.session_id FOR UPDATE;
        DELETE FROM tl_beat WHERE session_id = r.session_id;
        INSERT INTO tl_beat (session_id, beat)
        SELECT session_id, beat FROM tl_session WHERE session_id = r.session_id;
    END FOR;
    UPDATE resource_lock
    SET status = 'U', step = 'restored', thread_no = thread, log_no = NULL,
        session_id = NULL, lease_until = NULL, max_hold_until = NULL,
        token = RANDOM_BYTES(16), fence = GREATEST(fence,
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', tl_moment())) + 1,
        rev = rev + 1, remark = why, actor = decider, updated_at = now_at;
    UPDATE resource_holder
    SET status = 'F', step = 'restored', thread_no = thread, log_no = NULL,
        session_id = NULL, token = RANDOM_BYTES(16), fence = GREATEST(fence,
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', tl_moment())) + 1,
        rev = rev + 1, over_at = NULL, max_hold_until = NULL, remark = why,
        actor = decider, released_at = now_at, updated_at = now_at;
    -- All is looked through again.  The rows stay: a mark that is moved from where it no
    -- longer is must be seen.
    UPDATE trade_lock_low_water
    SET low_water = CAST('1970-01-01' AS DATETIME(6)) + INTERVAL 1 MICROSECOND;
    UPDATE tl_restore SET doubtful = doubted WHERE restore_no = last_no AND step = 'confirmed';
    UPDATE tl_schema
    SET accepted_no = last_no, accepted_at = tl_moment(), identity = tl_identity()
    WHERE one = 1;
END;
