-- The person behind an account: its name without the host, since one name from two hosts is one
-- person.  NULL for an account without a name, which anybody may use.
CREATE OR REPLACE FUNCTION tl_account_name(
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN NULLIF(LEFT(account, CHAR_LENGTH(account) - LOCATE('@', REVERSE(account))), '');

-- Checks each half, also one that is typed by hand.  A confirmation needs a proposal of somebody
-- else about the row as it is now, and one that was committed, whatever the session's isolation; a
-- refusal needs a confirmation.  A copy of a row that moves keeps
-- what it says, and decides nothing anew.
CREATE OR REPLACE TRIGGER trade_resolution_inserted BEFORE INSERT ON trade_resolution
FOR EACH ROW
whole:
BEGIN
    DECLARE proposer VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    CALL tl_guard();
    IF tl_slot_copies() THEN
        LEAVE whole;
    END IF;
    SET NEW.decided_at = tl_moment();
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
    IF NEW.act_no IS NOT NULL AND NOT COALESCE(EXISTS (SELECT 1 FROM tl_act
        WHERE act_no = NEW.act_no AND ended_at IS NULL
            AND what = IF(NEW.part = 1, 'resolve propose', 'resolve confirm')
            AND tl_account_name(account) = tl_account_name(USER())), 0) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'no such act of this account is under way';
    END IF;
    IF NEW.part = 3 AND (NEW.verdict <> 'F' OR NEW.worker <> 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'only a worker refuses a decision, and only that a trade failed';
    END IF;
    IF NEW.part > 1 THEN
        SET proposer = (SELECT account FROM trade_resolution WHERE cust_no = NEW.cust_no
            AND serial_no = NEW.serial_no AND op_code = NEW.op_code AND rev = NEW.rev
            AND verdict = NEW.verdict AND part = NEW.part - 1 LOCK IN SHARE MODE);
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
    DECLARE now_at DATETIME(6) DEFAULT tl_moment();
    IF tl_slot_copies() THEN
        LEAVE whole;
    END IF;
    -- Of one of many the row of the act is written with it.
    IF NEW.act_no IS NOT NULL THEN
        INSERT INTO tl_act_row (act_no, row_no, cust_no, serial_no, op_code, fence, result,
            acted_at)
        VALUES (NEW.act_no, NEW.act_row, NEW.cust_no, NEW.serial_no, NEW.op_code, NEW.fence,
            IF(NEW.part = 1, 'proposed', 'confirmed'), now_at);
        UPDATE tl_act SET done = done + 1 WHERE act_no = NEW.act_no;
    END IF;
    IF NEW.part = 2 AND NEW.verdict = 'C' THEN
        UPDATE trade_lock FORCE INDEX (PRIMARY)
        SET step = 'resolve clear', thread_no = NEW.thread_no, log_no = NEW.log_no,
            token = step_token, fence = fence + 1, rev = rev + 1, conflict = 0,
            success_epoch = IF(status = 'F', NULL, success_epoch), actor = NEW.actor,
            updated_at = now_at
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
            actor = NEW.actor, updated_at = now_at
        WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no
            AND op_code = NEW.op_code AND rev = NEW.rev AND status = 'F'
            AND conflict = 1 AND (blanked_rev IS NULL OR payload IS NOT NULL);
        SET changed = ROW_COUNT();
        -- A lane of a failed trade is closed, or another's that stood alone.
        INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
            log_no, token, fence, rev, epoch, next_run_at, remark, actor, created_at,
            updated_at)
        VALUES (NEW.cust_no, NEW.serial_no, retry_op, 'R', 'F', 'resolve paid',
            NEW.thread_no, NEW.log_no, step_token,
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at),
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at), NEW.epoch,
            now_at, NEW.reason, NEW.actor, now_at, now_at)
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
            s.actor = NEW.actor, s.updated_at = now_at,
            r.step = 'resolve failed', r.thread_no = NEW.thread_no, r.log_no = NEW.log_no,
            r.token = step_token, r.fence = r.fence + 1, r.rev = r.rev + 1,
            r.actor = NEW.actor, r.remark = NEW.reason, r.parked = NULL, r.attempts = 0,
            r.claims = LEAST(r.claims, 1), r.next_run_at = now_at,
            r.updated_at = now_at
        WHERE s.cust_no = NEW.cust_no AND s.serial_no = NEW.serial_no
            AND s.op_code = NEW.op_code AND s.rev = NEW.rev AND s.status = 'P'
            AND s.session_id IS NULL
            AND (s.success_epoch IS NULL OR s.success_epoch <> s.epoch)
            AND (s.send_until IS NULL OR s.send_until <= now_at)
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
    DECLARE now_at DATETIME(6) DEFAULT tl_moment();

    CALL tl_guard();
    IF COALESCE(who, '') = '' OR COALESCE(why, '') = '' THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator says who, and why';
    END IF;
    UPDATE trade_lock s
    STRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
        AND r.op_code = retry_op
    SET s.step = 'operator', s.thread_no = by_thread, s.log_no = by_log,
        s.token = step_token, s.fence = s.fence + 1, s.rev = s.rev + 1, s.actor = who,
        s.updated_at = now_at,
        r.step = 'operator', r.thread_no = by_thread, r.log_no = by_log,
        r.token = step_token, r.fence = r.fence + 1, r.rev = r.rev + 1, r.actor = who,
        r.remark = why, r.parked = NULL, r.claims = LEAST(r.claims, 1),
        r.next_run_at = now_at, r.updated_at = now_at
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
            updated_at = now_at
        WHERE cust_no = cust AND serial_no = serial AND op_code = op AND status = 'P'
            AND fence = seen AND lane = 'S' AND repeatable = 0
            AND (session_id IS NULL OR next_run_at IS NOT NULL)
            AND (max_hold_until IS NULL OR max_hold_until <= now_at
                OR session_id IS NULL
                OR NOT EXISTS (SELECT 1 FROM tl_session x
                    WHERE x.session_id = trade_lock.session_id AND x.ended_at IS NULL));
        SET changed = ROW_COUNT();
        INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
            log_no, token, fence, rev, epoch, next_run_at, remark, actor, created_at,
            updated_at)
        SELECT s.cust_no, s.serial_no, retry_op, 'R', 'F', s.step, s.thread_no, s.log_no,
            s.token, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at),
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at), s.epoch,
            now_at, why, who, now_at, now_at
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
    CALL tl_guard();
    IF tl_slot_copies() THEN
        LEAVE whole;
    END IF;
    SET NEW.closed_at = tl_moment();
    IF tl_account_name(NEW.account) IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator has an account with a name';
    END IF;
    IF NEW.part = 2 THEN
        SET proposer = (SELECT account FROM audit_closing
            WHERE finding = NEW.finding AND part = 1 LOCK IN SHARE MODE);
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
