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
