-- Sessions that are over: a process leaves one row for each time that it ran.
--
-- A session goes when it has ended, and was swept, before the time given: what it held in
-- the retry lane's care was opened by then.  Rows that still name it (a mutex nobody has
-- taken over since, or what a dead process commits late) find no session, which means the
-- same as an ended one.  So nothing has to be searched for holders.
CREATE OR REPLACE PROCEDURE tl_purge_sessions(IN older_ms BIGINT UNSIGNED,
    IN most INT UNSIGNED, OUT purged INT UNSIGNED)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE cut DATETIME(6) DEFAULT UTC_TIMESTAMP(6) - INTERVAL older_ms * 1000 MICROSECOND;

    IF older_ms < 86400000 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'nothing younger than a day is purged';
    END IF;
    DELETE FROM tl_session
    WHERE swept_at < cut AND ended_at < cut
    ORDER BY swept_at, ended_at
    LIMIT most;
    SET purged = ROW_COUNT();
END;

UPDATE tl_schema SET version = GREATEST(version, 7) WHERE one = 1;
