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

-- Removes finished trades with everything that belongs to them: both rows, their history, the
-- evidence and what operators decided, in one transaction.  It never removes a trade in process or
-- in conflict, nor one that changed, or could still be sent or tried anew, since the cut.  One call
-- looks at a page of rows and says in `purged` how many trades it removed, how many rows it looked
-- at, the last row's key, and how many lock rows, kept steps, pieces of evidence and decisions went
-- with the trades.  With `only_counts` it removes nothing, and says what it would have removed.
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
