-- Which servers read this one's log, what is left out of it, and whom this one replicates: only these
-- statements tell, and they are for accounts with the rights REPLICATION MASTER ADMIN, BINLOG MONITOR
-- and SLAVE MONITOR.  So the account that migrates needs those where a promoted server is to be
-- accepted by itself.
CREATE OR REPLACE PROCEDURE tl_replicas() READS SQL DATA SQL SECURITY DEFINER
SHOW SLAVE HOSTS;

CREATE OR REPLACE PROCEDURE tl_log_filters() READS SQL DATA SQL SECURITY DEFINER
SHOW BINLOG STATUS;

CREATE OR REPLACE PROCEDURE tl_connections() READS SQL DATA SQL SECURITY DEFINER
SHOW ALL SLAVES STATUS;

-- The last beat of each session stands in a key, too.  A replica changes a row that it finds by its
-- key: where one beat was passed over (by a position that was set by hand, a counter, a relay log or
-- an event that was lost, a copy that was older than its position), the next one finds no row there.
-- Then replication stops with error 1032; or, where it is told to go on in spite of that, the row
-- stays behind for as long as there is a row of the session.
CREATE OR REPLACE TRIGGER tl_session_begun AFTER INSERT ON tl_session
FOR EACH ROW
INSERT INTO tl_beat (session_id, beat) VALUES (NEW.session_id, NEW.beat);

CREATE OR REPLACE TRIGGER tl_session_deleted AFTER DELETE ON tl_session
FOR EACH ROW
BEGIN
    DELETE FROM tl_beat WHERE session_id = OLD.session_id;
    DELETE FROM tl_receipt WHERE session_id = OLD.session_id;
END;

-- Each statement that makes rows and grants their first sends leaves a receipt
-- (sql/object/trade_lock.sql).  In the trigger for changes it would cost claims their rights on history
-- (10.11: a multi-table UPDATE is refused then, now and again, with 1142).  A session calls this
-- after a beat if it was granted any, and whoever sweeps it, if it died: it removes them.  A replica that passed over one of them does
-- not find it, and stops with error 1032, as with a beat.  If the round is passed over as well, the
-- next beat finds no row, and each one after it.  Steps that are under way are left to the next round,
-- and nobody waits for them.
CREATE OR REPLACE PROCEDURE tl_receipts_close(IN of_session UUID)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    FOR r IN (SELECT token FROM tl_receipt WHERE session_id = of_session FOR UPDATE SKIP LOCKED) DO
        DELETE FROM tl_receipt WHERE session_id = of_session AND token = r.token;
    END FOR;
    UPDATE tl_beat SET rounds = rounds + 1 WHERE session_id = of_session;
    COMMIT;
END;

-- By what this server, as a replica, leaves out some of what its primary committed, or did so: then it
-- has no prefix of that.  NULL: it is not known to.  A setting that was taken back tells nothing.
CREATE OR REPLACE FUNCTION tl_passes_over()
RETURNS VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
READS SQL DATA SQL SECURITY DEFINER
RETURN NULLIF(LEFT(CONCAT_WS(', ', (SELECT GROUP_CONCAT(LOWER(variable_name), ' = ', variable_value
        ORDER BY variable_name SEPARATOR ', ')
    FROM information_schema.global_variables
    WHERE variable_value <> CASE
        WHEN variable_name = 'SLAVE_EXEC_MODE' THEN 'STRICT'
        WHEN variable_name = 'SLAVE_SKIP_ERRORS' THEN 'OFF'
        WHEN variable_name = 'SQL_SLAVE_SKIP_COUNTER' THEN '0'
        WHEN variable_name = 'REPLICATE_EVENTS_MARKED_FOR_SKIP' THEN 'REPLICATE'
        WHEN variable_name = 'GTID_SLAVE_POS' THEN SUBSTRING_INDEX(variable_value, ',', 1)
        WHEN variable_name IN ('REPLICATE_DO_DB', 'REPLICATE_IGNORE_DB', 'REPLICATE_DO_TABLE',
            'REPLICATE_IGNORE_TABLE', 'REPLICATE_WILD_DO_TABLE', 'REPLICATE_WILD_IGNORE_TABLE',
            'REPLICATE_REWRITE_DB') THEN ''
        ELSE variable_value END),
    (SELECT CONCAT('beats of session ', MIN(x.session_id), ' that were passed over') FROM tl_session x
    LEFT JOIN tl_beat b ON b.session_id = x.session_id AND b.beat = x.beat
    WHERE b.session_id IS NULL HAVING COUNT(*) > 0)), 255), '');

-- Puts on record which server has each commit of the accepted one before it is answered, by its id;
-- 0: the nodes of its Galera cluster.  It stands once a term, and is never changed: so of all
-- servers that have this record one alone can be accepted by itself after the accepted one.
CREATE OR REPLACE PROCEDURE tl_kept(IN keeper INT UNSIGNED)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE CONTINUE HANDLER FOR 1062 BEGIN END;

    IF NOT tl_restored() THEN
        INSERT INTO tl_restore (step, reason, account) VALUES ('kept', keeper, USER());
    END IF;
    SELECT r.reason FROM tl_schema s
    LEFT JOIN tl_restore r ON r.restore_no = s.accepted_no AND r.step = 'kept' WHERE s.one = 1;
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
    SET attested_at = COALESCE(attested_at, tl_moment()),
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
-- answered before this server had it (kept).  Which server that is stands on record once a term, and
-- each who attests saw it acknowledge.  So two that are promoted, on two sides of a split or one
-- behind the other, are never both accepted.
--
-- Where the old one is off for certain (fenced), and each who attests saw that it answered no commit
-- before this server had it, a process that died can have been told of nothing that is not here,
-- and one that is cut off can be told of nothing more.  So nobody waits for a session that has ended
-- here, as observers end it, without attesting.
--
-- Nor for one that ended in order on no named server ('') since it was named among those who have to
-- attest, as for one that did so before (tl_restore_opened).
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
    -- Sessions are read without a lock, so no heartbeat waits; a subquery of SET would lock them.
    IF dead > 0 THEN
        SELECT short + COUNT(*) INTO short
        FROM tl_attestation a LEFT JOIN tl_session x ON x.session_id = a.session_id
        WHERE a.restore_no = number AND a.attested_at IS NULL
            AND NOT (fenced AND (x.session_id IS NULL OR x.ended_at IS NOT NULL))
            AND COALESCE(x.ended_on <> '', 1);
    END IF;
    IF last_no = number AND done_no < number AND short = 0 AND vouched > 0
        AND CAST(@@read_only AS CHAR) IN ('0', 'OFF')
        AND EXISTS (SELECT 1 FROM tl_restore
            WHERE restore_no = number AND step = 'promoted' AND identity = tl_identity())
        AND EXISTS (SELECT 1 FROM tl_restore
            WHERE restore_no = done_no AND step = 'kept' AND reason IN ('0', @@server_id))
        AND NOT EXISTS (SELECT 1 FROM tl_restore
            WHERE restore_no > done_no AND (step = 'declared' OR (step = 'found'
                AND reason <> 'it is another server than the one that was accepted'))) THEN
        UPDATE tl_schema
        SET accepted_no = number,
            accepted_at = GREATEST(tl_moment(),
                COALESCE(accepted_at + INTERVAL 1 MICROSECOND, tl_moment())),
            identity = tl_identity()
        WHERE one = 1;
        INSERT INTO tl_restore (restore_no, step, reason, account)
        VALUES (number, 'proved', CONCAT('nothing is missing: ', asked - dead,
            ' sessions attested', IF(dead > 0, CONCAT(', ', dead, ' ended before'), '')), USER());
    END IF;
    COMMIT;
END;
