-- Purging the rows of names that nobody uses any more, as 0005 purges trades: in pages, in
-- the order of the names, never within a day, and stepping over rows that somebody is at.
-- A name comes back with the server's microseconds, above every fence that it had.
--
-- A mutex: unlocked, or its holder's last moment is over, and nothing happened for so
-- long.  Whoever asks at the same moment meets the row's lock, and answers busy.
CREATE OR REPLACE PROCEDURE tl_purge_resources(IN older_ms BIGINT UNSIGNED,
    IN most INT UNSIGNED,
    IN after_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe INT UNSIGNED DEFAULT 0;
    DECLARE finished TINYINT DEFAULT 0;
    DECLARE cut DATETIME(6) DEFAULT UTC_TIMESTAMP(6) - INTERVAL older_ms * 1000 MICROSECOND;
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

    IF older_ms < 86400000 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'nothing younger than a day is purged';
    END IF;
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

-- A read-write lock: the gate, which nobody is at, and holders' rows that are all free (the
-- dead are the janitor's) since so long.  Behind the gate nobody is granted anything
-- meanwhile; an ask that waits for it finds it gone, and makes it anew.
CREATE OR REPLACE PROCEDURE tl_purge_rw(IN older_ms BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN after_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT purged VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE removed, seen, ripe, in_use INT UNSIGNED DEFAULT 0;
    DECLARE finished TINYINT DEFAULT 0;
    DECLARE cut DATETIME(6) DEFAULT UTC_TIMESTAMP(6) - INTERVAL older_ms * 1000 MICROSECOND;
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

    IF older_ms < 86400000 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'nothing younger than a day is purged';
    END IF;
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

UPDATE tl_schema SET version = GREATEST(version, 6) WHERE one = 1;
