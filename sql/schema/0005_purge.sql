-- Purging: no account of ours may remove a row, so what may be removed is decided here,
-- with the rights of the account that ran the migration.
--
-- A finished trade goes with everything that belongs to it: both rows, their history, the
-- evidence and what operators decided, in one transaction.  Never one in process, never one
-- in conflict, never one that changed, or could still be sent or tried anew, within the time
-- given, and never within a day.  The next life of a key begins with the server's
-- microseconds, above every fence that the purged one had.
--
-- One call looks at a page of rows in the order of the key and says in `purged`: how many
-- trades it removed, how many rows it looked at, and the last one's key.  Rows that somebody
-- is at are stepped over.
CREATE OR REPLACE PROCEDURE tl_purge(IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe, in_use INT UNSIGNED DEFAULT 0;
    DECLARE finished TINYINT DEFAULT 0;
    DECLARE cut DATETIME(6) DEFAULT UTC_TIMESTAMP(6) - INTERVAL older_ms * 1000 MICROSECOND;
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

    IF older_ms < 86400000 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'nothing younger than a day is purged';
    END IF;
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

UPDATE tl_schema SET version = GREATEST(version, 5) WHERE one = 1;
