-- Records a clock jump.  Many processes see one jump; the first that knew of all earlier jumps
-- records it.  The low-water marks begin anew, since a row may have been written before them
-- meanwhile.  They begin at another moment for each jump, so a janitor that read a mark before, and
-- is late, does not move it.
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

-- Adjusts one page of rows, in the order of their key, to the oldest jump that is not settled.  The
-- progress is written with the rows, so each row is adjusted once, whoever dies in between.
-- `settled` gets three numbers: jumps left, rows changed, and 0 if another process adjusts now.
--   A trade in process: its last send may be under way for one hold from now, and "no such
-- payment" is counted anew.  After a jump back its deadline becomes earlier by as much; it never
-- becomes later.  A holder keeps its hold.
--   A lane that waits: after a jump back it waits for as much less.  If nobody knows by which clock
-- it was written, it is due; after a jump forward, if its trade has moments of two clocks.
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
        SET thread_no = thread, actor = who, rev = rev + 1,
            not_found_since = NULL,
            deadline_at = deadline_at + INTERVAL LEAST(size, 0) MICROSECOND,
            send_until = IF(send_until IS NULL, NULL, UTC_TIMESTAMP(6)
                + INTERVAL GREATEST(
                    tl_hold_us(created_at, first_max_hold_until, updated_at, max_hold_until),
                    tl_send_us(cust_no, serial_no, op_code, step, updated_at, send_until, since))
                    MICROSECOND),
            step = 'clock',
            max_hold_until = IF(max_hold_until IS NULL, NULL, UTC_TIMESTAMP(6)
                + INTERVAL tl_hold_us(created_at, first_max_hold_until, updated_at,
                    max_hold_until) MICROSECOND),
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
        UPDATE trade_lock FORCE INDEX (PRIMARY)
        SET step = 'clock', thread_no = thread, actor = who, rev = rev + 1,
            next_run_at = IF(size < 0 AND updated_at < since,
                next_run_at + INTERVAL size MICROSECOND, UTC_TIMESTAMP(6)),
            updated_at = UTC_TIMESTAMP(6)
        WHERE cust_no >= cust AND (cust_no > cust OR (cust_no = cust
                AND (serial_no > serial OR (serial_no = serial AND op_code > op))))
            AND (last_cust IS NULL OR (cust_no <= last_cust AND (cust_no < last_cust
                OR serial_no < last_serial
                OR (serial_no = last_serial AND op_code <= last_op))))
            AND lane = 'R' AND status = 'F' AND next_run_at > UTC_TIMESTAMP(6)
            AND (size < 0 OR tl_two_clocks(cust_no, serial_no,
                LEFT(op_code, CHAR_LENGTH(op_code) - CHAR_LENGTH('_RETRY')), NULL));
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

-- The longest hold of a trade that its row tells of, at most the longest hold there is.
CREATE OR REPLACE FUNCTION tl_hold_us(made DATETIME(6), first_until DATETIME(6),
    written DATETIME(6), held_until DATETIME(6))
RETURNS BIGINT NOT DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN LEAST(604800000000, GREATEST(0,
    COALESCE(TIMESTAMPDIFF(MICROSECOND, made, first_until), 0),
    COALESCE(TIMESTAMPDIFF(MICROSECOND, written, held_until), 0)));

-- Whether the last step of a trade in process lies before an earlier one, by more than a step waits
-- for another: the clock was set back between them, and no adjustment followed.  `written` is the
-- moment of that step; NULL stands for the step that the adjustment under way has replaced.
CREATE OR REPLACE FUNCTION tl_two_clocks(cust VARCHAR(32) CHARACTER SET ascii,
    serial VARCHAR(64) CHARACTER SET ascii, op VARCHAR(32) CHARACTER SET ascii,
    written DATETIME(6))
RETURNS TINYINT NOT DETERMINISTIC READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE since_rev BIGINT UNSIGNED DEFAULT COALESCE((SELECT MAX(p.rev) FROM trade_lock_past p
        WHERE p.serial_no = serial AND p.cust_no = cust AND p.op_code = op
            AND (p.step = 'clock' OR p.status <> 'P')), 0);
    DECLARE latest DATETIME(6) DEFAULT (SELECT MAX(p.logged_at) FROM trade_lock_past p
        WHERE p.serial_no = serial AND p.cust_no = cust AND p.op_code = op
            AND p.rev > since_rev);
    DECLARE made DATETIME(6) DEFAULT (SELECT t.created_at FROM trade_lock t
        WHERE t.cust_no = cust AND t.serial_no = serial AND t.op_code = op AND since_rev = 0);
    DECLARE last_at DATETIME(6) DEFAULT COALESCE(written, (SELECT p.logged_at
        FROM trade_lock_past p
        WHERE p.serial_no = serial AND p.cust_no = cust AND p.op_code = op
        ORDER BY p.rev DESC LIMIT 1));
    RETURN COALESCE(GREATEST(COALESCE(latest, made), COALESCE(made, latest))
        > last_at + INTERVAL 1 MINUTE, 0);
END;

-- For how long the last send of a trade in process may still be under way.  If one clock wrote what
-- the row says of it, that is what was left when the row was written.  Otherwise it is the longest
-- that a step of its history let a send take.  A step is logged later than its statement began, and
-- the clock may have been set in between.  So an arming counts from the step before it, too.
-- `last_step` is the step that the adjustment replaces: assignments go from left to right.
CREATE OR REPLACE FUNCTION tl_send_us(cust VARCHAR(32) CHARACTER SET ascii,
    serial VARCHAR(64) CHARACTER SET ascii, op VARCHAR(32) CHARACTER SET ascii,
    last_step VARCHAR(16) CHARACTER SET ascii, written DATETIME(6), sent_until DATETIME(6),
    since DATETIME(6))
RETURNS BIGINT NOT DETERMINISTIC READS SQL DATA SQL SECURITY INVOKER
RETURN LEAST(604800000000, GREATEST(0, COALESCE(
    IF(last_step IN ('restored', 'filed')
            OR (written < since AND NOT tl_two_clocks(cust, serial, op, written)),
        TIMESTAMPDIFF(MICROSECOND, written, sent_until),
        (SELECT MAX(TIMESTAMPDIFF(MICROSECOND, h.began_at, h.over_at))
        FROM (SELECT
                IF(p.step = 'arm', LEAST(p.logged_at, COALESCE(
                    LAG(p.logged_at) OVER (ORDER BY p.rev), p.logged_at)), p.logged_at) AS began_at,
                CASE WHEN p.step IN ('ask', 'reclaim', 'arm') THEN p.max_hold_until
                    WHEN p.step IN ('restored', 'filed', 'by hand') THEN p.send_until
                END AS over_at
            FROM trade_lock_past p
            WHERE p.serial_no = serial AND p.cust_no = cust AND p.op_code = op) h)), 0)));

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
