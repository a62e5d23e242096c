CREATE OR REPLACE TRIGGER resource_holder_inserted AFTER INSERT ON resource_holder
FOR EACH ROW
BEGIN
    IF (NEW.fence | NEW.rev) >> 62 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a fence or revision beyond all clocks';
    END IF;
    INSERT INTO resource_holder_log
    VALUES (NEW.resource, NEW.slot, NEW.rev,
        SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
        NEW.kind, NEW.status, NEW.step, NEW.thread_no, NEW.log_no, NEW.session_id, NEW.token,
        NEW.fence, NEW.over_at, NEW.remark, NEW.actor, USER());
END;

-- Every step of the library raises rev; a change that does not was typed by hand.
CREATE OR REPLACE TRIGGER resource_holder_updated BEFORE UPDATE ON resource_holder
FOR EACH ROW
BEGIN
    IF NOT (NEW.resource <=> OLD.resource AND NEW.slot <=> OLD.slot) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the name of a lock never changes';
    END IF;
    IF (NEW.fence >> 62 AND NEW.fence > OLD.fence + 1)
        OR (NEW.rev >> 62 AND NEW.rev > OLD.rev + 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a fence or revision beyond all clocks';
    END IF;
    IF (NEW.rev > OLD.rev) IS NOT TRUE THEN
        SET NEW.rev = OLD.rev + 1, NEW.step = 'by hand';
    END IF;
END;

-- Runs after the row was changed, so that history has what is there.
CREATE OR REPLACE TRIGGER resource_holder_logged AFTER UPDATE ON resource_holder
FOR EACH ROW
INSERT INTO resource_holder_log
VALUES (NEW.resource, NEW.slot, NEW.rev,
    SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
    NEW.kind, NEW.status, NEW.step, NEW.thread_no, NEW.log_no, NEW.session_id, NEW.token,
    NEW.fence, NEW.over_at, NEW.remark, NEW.actor, USER());

CREATE OR REPLACE TRIGGER resource_holder_deleted AFTER DELETE ON resource_holder
FOR EACH ROW
INSERT INTO resource_holder_log
VALUES (OLD.resource, OLD.slot, OLD.rev + 1,
    SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
    OLD.kind, OLD.status, 'deleted', OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token,
    OLD.fence, OLD.over_at, OLD.remark, OLD.actor, USER());

-- Whether a holder's step with this token was ever committed.  The application has no other right
-- on this history.
CREATE OR REPLACE FUNCTION tl_holder_token_seen(
    name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    number SMALLINT UNSIGNED, wanted BINARY(16))
RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN EXISTS (SELECT 1 FROM resource_holder_log
    WHERE resource = name AND slot = number AND token = wanted);

-- An operator frees one holder, or a waiting writer, behind the gate, in the caller's transaction, and
-- the act is noted.  It is bound to the fence that was seen.  The old holder then fails on the new
-- token; the new fence is above every grant's, so the next grant's fence is above this step.
CREATE OR REPLACE PROCEDURE tl_rw_force(
    IN name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin, IN number SMALLINT UNSIGNED,
    IN seen BIGINT UNSIGNED, IN by_thread UUID, IN by_log UUID, IN step_token BINARY(16),
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE now_at DATETIME(6) DEFAULT tl_moment();
    DECLARE gate VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    DECLARE above BIGINT UNSIGNED;

    CALL tl_guard();
    SET gate = (SELECT resource FROM rw_lock WHERE resource = name FOR UPDATE);
    SET above = (SELECT MAX(fence) + 1 FROM resource_holder WHERE resource = gate FOR UPDATE);
    UPDATE resource_holder
    SET status = 'F', step = 'force unlock', thread_no = by_thread, log_no = by_log,
        session_id = NULL, token = step_token, fence = above, rev = rev + 1, over_at = NULL,
        max_hold_until = NULL, remark = why, actor = who, released_at = now_at,
        updated_at = now_at
    WHERE resource = gate AND slot = number AND fence = seen AND status <> 'F';
    IF ROW_COUNT() > 0 THEN
        CALL tl_act_note('resource unlock', CONCAT(name, ' --slot ', number), why, who, by_log,
            NULL, NULL, NULL, 0, 'done');
    END IF;
END;

-- The state of a holder's row now.  A dead one is freed by the janitor, or by the first ask in
-- whose way it is.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW resource_holder_state AS
SELECT h.*, x.program, x.host, x.pid, UTC_TIMESTAMP(6) AS now_at,
    CASE
        WHEN h.status = 'F' THEN 'free'
        WHEN h.over_at <= UTC_TIMESTAMP(6)
            OR (h.by_session = 1 AND (x.session_id IS NULL OR x.ended_at IS NOT NULL))
            THEN 'dead'
        WHEN h.status = 'W' THEN 'waiting'
        WHEN h.status = 'D' THEN 'done'
        ELSE 'held'
    END AS state
FROM resource_holder h
LEFT JOIN tl_session x ON x.session_id = h.session_id;
