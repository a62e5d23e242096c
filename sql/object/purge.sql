-- Purging.  No account of ours may remove a row, so these procedures decide what may be removed,
-- with the rights of the account that ran the migration.  They go by pages, in the order of the
-- key, never remove what is younger than the retention of this database, and skip locked rows.  The
-- fence of a key that comes again begins with the server's microseconds, above every fence that the
-- purged row had.  Nothing goes without an act.

-- A row from before this moment is certainly older than older_ms, whatever the clock did
-- since.  A clock that is set forward makes rows look older, so the jumps on record since are taken
-- off.  A jump that nobody has seen yet shows by two other moments, of which the earlier counts.
-- One is what the time would be without clock jumps since the server was started: UUID() tells it,
-- whose moments follow the server's monotonic clock.  The other is the last sign of life of a
-- process, as in clock_open.
CREATE OR REPLACE FUNCTION tl_certain_cut(older_ms BIGINT UNSIGNED)
RETURNS DATETIME(6) NOT DETERMINISTIC READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE now_at DATETIME(6) DEFAULT tl_moment();
    DECLARE all_us, since_us BIGINT DEFAULT 0;
    DECLARE steady CHAR(36) CHARACTER SET ascii DEFAULT UUID();
    DECLARE steady_at, alive_at, over_at DATETIME(6);

    CALL tl_guard();
    -- A caller's old snapshot knows nothing of the jumps since, so these are read with locks.
    IF COALESCE((SELECT c.steps > c.settled FROM tl_clock c WHERE c.one = 1
        LOCK IN SHARE MODE), 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the server''s clock was set: nothing is purged until that is settled';
    END IF;
    SET all_us = (SELECT COALESCE(SUM(s.size_us), 0) FROM tl_clock_step s
        WHERE s.size_us > 0 LOCK IN SHARE MODE);
    SET since_us = (SELECT COALESCE(SUM(s.size_us), 0) FROM tl_clock_step s
        WHERE s.size_us > 0 AND s.noticed_at >= now_at
            - INTERVAL older_ms * 1000 MICROSECOND - INTERVAL all_us MICROSECOND
        LOCK IN SHARE MODE);
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

-- The cut of a purge.
CREATE OR REPLACE FUNCTION tl_purge_cut(older_ms BIGINT UNSIGNED)
RETURNS DATETIME(6) NOT DETERMINISTIC READS SQL DATA SQL SECURITY DEFINER
BEGIN
    -- NULL is what a statement that was killed tells.
    IF NOT COALESCE(older_ms >= (SELECT retention_ms FROM tl_schema WHERE one = 1), 0) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'nothing younger than the retention (tl_schema.retention_ms) is purged';
    END IF;
    RETURN tl_certain_cut(older_ms);
END;

-- Counts what was removed in the act of this connection that is under way; without one it writes an
-- act for this page alone.
CREATE OR REPLACE PROCEDURE tl_purge_act(IN older_ms BIGINT UNSIGNED, IN removed INT UNSIGNED)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE act BIGINT UNSIGNED DEFAULT @tl_act;

    UPDATE tl_act SET done = done + removed
    WHERE act_no = act AND what = 'purge' AND ended_at IS NULL
        AND tl_account_name(account) = tl_account_name(USER());
    IF ROW_COUNT() = 0 AND removed > 0 THEN
        CALL tl_act_begin('purge', CONCAT('--older ', older_ms, 'ms'), '', '', NULL, 0, act);
        UPDATE tl_act SET done = removed WHERE act_no = act;
        CALL tl_act_end(act, CONCAT('rows=', removed));
    END IF;
END;

-- Whether a finished trade may go: `state` is NULL, or what it is made of just now: the revisions
-- of the row that decides and of its retry row (0: none), how many steps are kept, how many pieces
-- of evidence and decisions there are, and the revision at which it was blanked.  Evidence and
-- decisions are append only, and a row's revision rises with each step, so the same state is the same
-- content.  The trade is in process or in conflict, or changed, or could still be sent or tried anew,
-- since the cut: it stays.  The rows stay locked until the transaction ends.
--
-- `does` says what else: 0 nothing, 1 everything that belongs to the trade is removed, 2 only if its
-- state is still the one in `state`, 3 its contents and what people wrote about it are blanked: what
-- is sent still keeps nobody from that.  Money, references, fingerprint, moments and accounts stay,
-- and no revision rises.  Nobody may call it but the procedures below, in their transaction.
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
    DECLARE now_at DATETIME(6) DEFAULT tl_moment();
    DECLARE ripe, in_use INT UNSIGNED DEFAULT 0;
    DECLARE own_rev, other_rev, blanked BIGINT UNSIGNED DEFAULT 0;
    DECLARE expected VARCHAR(127) CHARACTER SET ascii COLLATE ascii_bin DEFAULT state;
    DECLARE other VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT CONCAT(op, _ascii '_RETRY');

    SET state = NULL;
    -- The row that decides: a sync row, or a retry row that stands alone.
    SELECT COUNT(*), MAX(t.rev), COALESCE(MAX(t.blanked_rev), 0) INTO ripe, own_rev, blanked
    FROM trade_lock t
    WHERE t.cust_no = cust AND t.serial_no = serial AND t.op_code = op
        AND t.status <> 'P' AND t.conflict = 0 AND t.parked IS NULL
        AND (t.next_run_at IS NULL OR t.lane = 'S') AND t.updated_at < cut
        AND (does = 3 OR t.send_until IS NULL OR t.send_until < cut)
        AND (t.deadline_at IS NULL OR t.deadline_at < now_at
            OR (does = 3 AND (t.status = 'Y' OR t.retryable = 0)))
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
    SET state = CONCAT_WS(' ', own_rev, other_rev, steps, filed, decided, blanked);
    IF does = 2 AND (state = expected) IS NOT TRUE THEN
        SET state = NULL;
        LEAVE whole;
    END IF;
    IF does > 0 THEN
        BEGIN
            -- Of a fleet: its slot is being moved, and the copy is compared with this.
            DECLARE EXIT HANDLER FOR 31003, 31004 SET state = NULL;
            IF does = 3 THEN
                -- Nobody could tell a worker what to pay: a blanked failure is not tried anew.
                UPDATE trade_lock SET payload = NULL, result = NULL, traceparent = NULL,
                    label = NULL, remark = 'blanked', blanked_rev = rev, retryable = 0
                WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
                UPDATE trade_lock_past SET remark = NULL
                WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
                UPDATE trade_evidence SET remark = NULL
                WHERE cust_no = cust AND serial_no = serial AND op_code = op;
                UPDATE trade_resolution SET reason = ''
                WHERE cust_no = cust AND serial_no = serial AND op_code = op;
                UPDATE audit_closing SET reason = ''
                WHERE cust_no = cust AND serial_no = serial AND op_code IN (op, other);
                -- Of an act about many trades the reason is about none of them.
                UPDATE tl_act_row r STRAIGHT_JOIN tl_act a ON a.act_no = r.act_no AND a.planned = 1
                SET a.reason = ''
                WHERE r.cust_no = cust AND r.serial_no = serial AND r.op_code IN (op, other);
                LEAVE whole;
            END IF;
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
-- of [cust_no, serial_no, op_code, state]; 3: they are blanked, and no row is locked that is in
-- process, young or blanked already; 4: likewise, of after_cust alone, and blanked ones anew.
CREATE OR REPLACE PROCEDURE tl_purge_page(IN does TINYINT,
    IN older_ms BIGINT UNSIGNED, IN cut DATETIME(6), IN most INT UNSIGNED,
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
    DECLARE finished, wanted TINYINT DEFAULT 0;
    DECLARE state VARCHAR(127) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE last_cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT IF(does = 4, after_cust, REPEAT('~', 32));
    DECLARE cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin DEFAULT after_cust;
    DECLARE serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT after_serial;
    DECLARE op VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin
        DEFAULT after_op;
    DECLARE page CURSOR FOR
        SELECT cust_no, serial_no, op_code, does < 3 OR (status <> 'P' AND updated_at < cut
            AND (does = 4 OR NOT (blanked_rev <=> rev)))
        FROM trade_lock
        WHERE cust_no >= after_cust AND cust_no <= last_cust
            AND (cust_no > after_cust OR (cust_no = after_cust AND (serial_no > after_serial
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
        FETCH page INTO cust, serial, op, wanted;
        IF finished THEN
            LEAVE walk;
        END IF;
        SET seen = seen + 1;
        IF NOT wanted THEN
            ITERATE walk;
        END IF;
        CALL tl_purge_trade(IF(does < 3, does = 1, 3), cut, cust, serial, op, state,
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
    IF does = 1 THEN
        CALL tl_purge_act(older_ms, removed);
    END IF;
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

    CALL tl_purge_page(IF(only_counts, 0, 1), older_ms, tl_purge_cut(older_ms), most, after_cust,
        after_serial, after_op, purged, named);
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
CALL tl_purge_page(2, older_ms, tl_purge_cut(older_ms), most, after_cust, after_serial, after_op,
    purged, named);

-- Removes trades that were named and whose rows are in an archive since, in one transaction.  Each
-- is judged anew, and goes only if it still is what was named: a row that changed, evidence or a
-- decision that came meanwhile is not in the archive, so that trade stays.  A trade that is gone
-- already, after a purge that was cut off, is stepped over.
--
-- The same transaction puts the set on record: so where trades are gone their set is on record, also
-- in a promoted copy, and no set is of which nothing was removed.  What is in its files is not known
-- here.
CREATE OR REPLACE PROCEDURE tl_purge_archived(IN older_ms BIGINT UNSIGNED,
    IN named LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN set_sha CHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    IN sha_before CHAR(64) CHARACTER SET ascii COLLATE ascii_bin, IN number INT UNSIGNED,
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
    CALL tl_purge_act(older_ms, removed);
    IF removed > 0 THEN
        INSERT INTO tl_archive_set (sha, before_sha, set_no, trades, account, noted_at)
        VALUES (set_sha, sha_before, number, removed, USER(), tl_moment())
        ON DUPLICATE KEY UPDATE trades = trades + removed;
    END IF;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, cust, serial, op, locks, steps, filed, decided);
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
    IF NOT only_counts THEN
        CALL tl_purge_act(older_ms, removed);
    END IF;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, name, steps);
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
    IF NOT only_counts THEN
        CALL tl_purge_act(older_ms, removed);
    END IF;
    COMMIT;
    SET purged = CONCAT_WS(' ', removed, seen, name, steps);
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
    FOR lost IN (SELECT c.channel, c.op_code, c.session_id
        FROM tl_session_channel c FORCE INDEX (PRIMARY)
        LEFT JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = c.session_id
        WHERE s.session_id IS NULL LIMIT most) DO
        DELETE FROM tl_session_channel
        WHERE channel = lost.channel AND op_code = lost.op_code AND session_id = lost.session_id;
    END FOR;
    CALL tl_purge_act(older_ms, purged);
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
