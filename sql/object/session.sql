-- What a session says of itself lies in the past, since a sign of life that lies ahead shows that the
-- clock was set back.  What lay ahead before, because it was, may stay.
CREATE OR REPLACE TRIGGER tl_session_inserted BEFORE INSERT ON tl_session
FOR EACH ROW
BEGIN
    DECLARE latest DATETIME(6) DEFAULT tl_moment() + INTERVAL 1 SECOND;

    SET NEW.begun_by = USER();
    IF COALESCE(NEW.alive_until - INTERVAL NEW.timeout_ms * 1000 MICROSECOND > latest
        OR NEW.started_at > latest, 1) OR NEW.ended_at > latest OR NEW.swept_at > latest THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a session does not live ahead of the clock';
    END IF;
END;

CREATE OR REPLACE TRIGGER tl_session_updated BEFORE UPDATE ON tl_session
FOR EACH ROW
BEGIN
    DECLARE latest DATETIME(6) DEFAULT tl_moment() + INTERVAL 1 SECOND;

    SET NEW.begun_by = OLD.begun_by;
    IF COALESCE(NEW.alive_until - INTERVAL NEW.timeout_ms * 1000 MICROSECOND
            > GREATEST(latest, OLD.alive_until - INTERVAL OLD.timeout_ms * 1000 MICROSECOND
                + INTERVAL 1 SECOND)
        OR NEW.started_at > GREATEST(latest, OLD.started_at), 1)
        OR NEW.ended_at > GREATEST(latest, COALESCE(OLD.ended_at, latest))
        OR NEW.swept_at > GREATEST(latest, COALESCE(OLD.swept_at, latest)) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a session does not live ahead of the clock';
    END IF;
END;
