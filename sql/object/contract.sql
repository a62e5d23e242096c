-- A session declares what its program promises of a channel.  It commits by itself.
--   was      the contract that it compared with `says`; NULL: it has compared none
--   more     whether `says` promises anything that `was` does not
--   verdict  '': it is on record, and holds.  'was ...': this is on record, and is to be compared.
--            'lives ...': this process lives and promises something else.  'sent ...': this trade
--            was sent under less, and is in process
--
-- All who declare lock the channel's row.  While a session lives that has declared one contract, no
-- other one is taken, so all who send and all who compensate go by the same.  A session that ended
-- sends nothing any more, and what it sent is in process or over.  So a contract rises only when
-- nobody lives who sends under the lesser one, and nothing is in process that was sent under it.
-- Waiting trades have no next moment; held ones lie behind the low-water mark.
CREATE OR REPLACE PROCEDURE tl_channel_declare(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN own UUID,
    IN was VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin,
    IN says VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin,
    IN more TINYINT,
    OUT verdict VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE known VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE ended_until DATETIME(6) DEFAULT '1970-01-01';
    DECLARE gone UUID DEFAULT NULL;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    SET verdict = '';
    START TRANSACTION;
    INSERT IGNORE INTO trade_channel (channel, op_code) VALUES (name, op);
    SELECT contract INTO known FROM trade_channel
        WHERE channel = name AND op_code = op FOR UPDATE;
    IF known <> says AND NOT (was <=> known) THEN
        SET verdict = CONCAT('was ', known);
    ELSEIF known <> says THEN
        SELECT CONCAT('lives ', s.program, ' ', s.pid, '@', s.host) INTO verdict
            FROM tl_session_channel c FORCE INDEX (PRIMARY)
            STRAIGHT_JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = c.session_id
            WHERE c.channel = name AND c.op_code = op AND c.session_id <> own
                AND s.ended_at IS NULL LIMIT 1;
        IF verdict = '' AND more THEN
            SELECT CONCAT('sent ', serial_no, ' of ', cust_no) INTO verdict
                FROM trade_lock FORCE INDEX (due)
                WHERE op_code = op AND next_run_at IS NULL AND lane = 'S' AND status = 'P'
                    AND sends > 0 AND channel = name COLLATE ascii_bin LIMIT 1;
        END IF;
        IF verdict = '' AND more THEN
            SELECT low_water INTO ended_until FROM trade_lock_low_water WHERE op_code = op;
            SELECT CONCAT('sent ', serial_no, ' of ', cust_no) INTO verdict
                FROM trade_lock FORCE INDEX (due)
                WHERE op_code = op AND next_run_at >= ended_until AND lane = 'S' AND status = 'P'
                    AND sends > 0 AND channel = name COLLATE ascii_bin LIMIT 1;
        END IF;
    END IF;
    IF verdict = '' THEN
        UPDATE trade_channel SET contract = says WHERE channel = name AND op_code = op;
        INSERT IGNORE INTO tl_session_channel (channel, op_code, session_id)
            VALUES (name, op, own);
        -- One for each that comes, by its key: no heartbeat waits for that.
        SELECT c.session_id INTO gone FROM tl_session_channel c FORCE INDEX (PRIMARY)
            LEFT JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = c.session_id
            WHERE c.channel = name AND c.op_code = op AND c.session_id <> own
                AND (s.session_id IS NULL OR s.ended_at IS NOT NULL) LIMIT 1;
        DELETE FROM tl_session_channel
        WHERE channel = name AND op_code = op AND session_id = gone;
    END IF;
    COMMIT;
END;

-- A session says its site; the first one of all says that of the installation.  It commits by
-- itself.
CREATE OR REPLACE PROCEDURE tl_site_is(
    IN says VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    OUT known VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    -- A subquery of IF would lock the row, and two that begin would be a deadlock.
    SELECT site INTO known FROM tl_schema WHERE one = 1;
    IF known IS NULL THEN
        UPDATE tl_schema SET site = says WHERE one = 1 AND site IS NULL;
    END IF;
    SELECT site INTO known FROM tl_schema WHERE one = 1 LOCK IN SHARE MODE;
    COMMIT;
END;

-- An administrator gives the installation another site: no process may live, and no trade may be in
-- process.  Its sessions wait for the row of tl_schema, so none begins meanwhile.  It walks the
-- trades.
CREATE OR REPLACE PROCEDURE tl_site_change(
    IN says VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE known VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE living, open BIGINT DEFAULT 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    SELECT site INTO known FROM tl_schema WHERE one = 1 FOR UPDATE;
    IF COALESCE(says, '') NOT RLIKE '^[!-~]+$' OR COALESCE(who, '') = ''
        OR COALESCE(why, '') = '' THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a site is printable ASCII without blanks, and somebody says why';
    END IF;
    SELECT COUNT(*) INTO living FROM tl_session WHERE swept_at IS NULL AND ended_at IS NULL;
    SELECT COUNT(*) INTO open FROM trade_lock
        WHERE status = 'P' AND lane = 'S' AND repeatable = 0;
    IF living > 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'processes live that make keys of the site: end them first';
    END IF;
    IF open > 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'trades are in process with keys of the site: have them ended first';
    END IF;
    UPDATE tl_schema SET site = says WHERE one = 1;
    CALL tl_act_note('site', CONCAT(COALESCE(known, 'none'), ' to ', says), why, who, NULL, NULL,
        NULL, NULL, 0, 'done');
    COMMIT;
END;
