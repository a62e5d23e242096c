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
    DECLARE called_at DATETIME(6) DEFAULT tl_moment();
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
            tl_moment(), who, USER());
        UPDATE tl_clock SET steps = known + 1 WHERE one = 1;
        UPDATE trade_lock_low_water SET low_water =
            CAST('1970-01-01' AS DATETIME(6)) + INTERVAL known + 2 MICROSECOND;
    END IF;
    COMMIT;
END;

-- What is no trade, and was not over when the clock was set, begins anew: a lock is held, or kept,
-- for as long as it was granted or renewed for, and the sends of a session that ended, and a probe,
-- count for their longest hold.  set_at is by the clock as it was.
CREATE OR REPLACE PROCEDURE tl_clock_settle_holds(IN set_at DATETIME(6), IN thread UUID)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    -- A lease that was cut to the end of the hold counts as long as the hold.
    UPDATE resource_lock
    SET lease_until = tl_moment() + INTERVAL TIMESTAMPDIFF(MICROSECOND,
            IF(step = 'renew' AND lease_until < max_hold_until, updated_at, locked_at),
            lease_until) MICROSECOND,
        max_hold_until = tl_moment()
            + INTERVAL TIMESTAMPDIFF(MICROSECOND, locked_at, max_hold_until) MICROSECOND,
        free_at = IF(free_at > set_at, tl_moment()
            + INTERVAL TIMESTAMPDIFF(MICROSECOND, locked_at, free_at) MICROSECOND, free_at),
        step = 'clock', thread_no = thread, rev = rev + 1, locked_at = tl_moment(),
        updated_at = locked_at
    WHERE COALESCE(lease_until, max_hold_until) > set_at OR free_at > set_at;
    UPDATE resource_holder FORCE INDEX (held)
    SET over_at = tl_moment() + INTERVAL TIMESTAMPDIFF(MICROSECOND,
            IF(step = 'renew' AND over_at < max_hold_until, updated_at, acquired_at), over_at)
            MICROSECOND,
        max_hold_until = tl_moment()
            + INTERVAL TIMESTAMPDIFF(MICROSECOND, acquired_at, max_hold_until) MICROSECOND,
        step = 'clock', thread_no = thread, rev = rev + 1, acquired_at = tl_moment(),
        updated_at = acquired_at
    WHERE over_at > set_at;
    UPDATE trade_channel_permit p FORCE INDEX (PRIMARY)
    STRAIGHT_JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = p.session_id
    SET s.ended_at = tl_moment()
    WHERE s.ended_at + INTERVAL p.hold_ms * 1000 MICROSECOND > set_at;
    UPDATE trade_channel_breaker
    SET next_at = tl_moment()
        + INTERVAL IF(window_sends = 1, hold_ms, probe_s * 1000) * 1000 MICROSECOND
    WHERE opened_at IS NOT NULL AND next_at > set_at;
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
    -- By the clock as it was before it was set.  A row is written and seen a moment later.
    DECLARE set_at DATETIME(6) DEFAULT NULL;
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
        SELECT s.size_us, COALESCE(s.earliest_at - INTERVAL s.size_us MICROSECOND
                - INTERVAL 1 MINUTE, CAST('1970-01-01' AS DATETIME(6)))
            INTO size, set_at FROM tl_clock_step s WHERE s.step_no = done + 1;
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
            updated_at = tl_moment()
        WHERE cust_no >= cust AND (cust_no > cust OR (cust_no = cust
                AND (serial_no > serial OR (serial_no = serial AND op_code > op))))
            AND (last_cust IS NULL OR (cust_no <= last_cust AND (cust_no < last_cust
                OR serial_no < last_serial
                OR (serial_no = last_serial AND op_code <= last_op))))
            AND status = 'P' AND IF(repeatable, max_hold_until > set_at, lane = 'S');
        SET rows_changed = ROW_COUNT();
        UPDATE trade_lock r FORCE INDEX (PRIMARY)
        LEFT JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = r.cust_no
            AND s.serial_no = r.serial_no
            AND s.op_code = LEFT(r.op_code, CHAR_LENGTH(r.op_code) - CHAR_LENGTH('_RETRY'))
            AND s.status = 'P' AND s.repeatable = 0
        SET r.step = 'clock', r.thread_no = thread, r.actor = who, r.rev = r.rev + 1,
            r.next_run_at = GREATEST(COALESCE(s.send_until, tl_moment()), tl_moment()),
            r.updated_at = tl_moment()
        WHERE r.cust_no >= cust AND (r.cust_no > cust OR (r.cust_no = cust
                AND (r.serial_no > serial OR (r.serial_no = serial AND r.op_code > op))))
            AND (last_cust IS NULL OR (r.cust_no <= last_cust AND (r.cust_no < last_cust
                OR r.serial_no < last_serial
                OR (r.serial_no = last_serial AND r.op_code <= last_op))))
            AND r.lane = 'R' AND r.status = 'F' AND r.next_run_at
                > GREATEST(COALESCE(s.send_until, tl_moment()), tl_moment());
        SET rows_changed = rows_changed + ROW_COUNT();
        IF last_cust IS NULL THEN
            CALL tl_clock_settle_holds(set_at, thread);
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
    RETURN TIMESTAMPDIFF(MICROSECOND, tl_moment(), GREATEST(
        CAST('1970-01-01' AS DATETIME(6)),
        COALESCE((SELECT MAX(p.logged_at) FROM trade_lock_past p
            WHERE p.serial_no = serial AND p.cust_no = cust AND p.op_code = op
                AND p.rev > since_rev), CAST('1970-01-01' AS DATETIME(6))),
        COALESCE((SELECT t.created_at FROM trade_lock t
            WHERE t.cust_no = cust AND t.serial_no = serial AND t.op_code = op
                AND since_rev = 0), CAST('1970-01-01' AS DATETIME(6)))));
END;
