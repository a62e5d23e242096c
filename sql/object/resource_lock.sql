-- A release in a group (resource_group) changes the row that was granted; if the row is gone,
-- the lock is lost, and no row is made.  The trigger runs after the INSERT, since one before it
-- would also run for every row that is there already.
CREATE OR REPLACE TRIGGER resource_lock_inserted AFTER INSERT ON resource_lock
FOR EACH ROW
BEGIN
    IF NEW.step = _ascii 'release' THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644, MESSAGE_TEXT = 'no row to unlock';
    END IF;
    IF (NEW.fence | NEW.rev) >> 62 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a fence or revision beyond all clocks';
    END IF;
    INSERT INTO resource_log
    VALUES (NEW.resource, NEW.rev,
        SYSDATE(6)
            + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
        NEW.step, NEW.status, NEW.thread_no, NEW.log_no, NEW.session_id, NEW.token,
        NEW.fence, NEW.lease_until, NEW.max_hold_until, NEW.free_at, NEW.remark,
        NEW.actor, USER());
END;

-- A refused ask changes nothing: rev stays, and history gets no step.  If SQL typed by hand lowered
-- rev, or made it NULL, it is counted here instead.
CREATE OR REPLACE TRIGGER resource_lock_updated BEFORE UPDATE ON resource_lock
FOR EACH ROW
BEGIN
    IF NOT (NEW.resource <=> OLD.resource) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the name of a lock never changes';
    END IF;
    IF (NEW.fence >> 62 AND NEW.fence > OLD.fence + 1)
        OR (NEW.rev >> 62 AND NEW.rev > OLD.rev + 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a fence or revision beyond all clocks';
    END IF;
    -- Two questions one in the other, since the long one is prepared anew for every row.
    IF (NEW.rev > OLD.rev) IS NOT TRUE THEN
        IF NOT (NEW.rev <=> OLD.rev
            AND NEW.status <=> OLD.status AND NEW.step <=> OLD.step
            AND NEW.thread_no <=> OLD.thread_no AND NEW.log_no <=> OLD.log_no
            AND NEW.session_id <=> OLD.session_id AND NEW.token <=> OLD.token
            AND NEW.fence <=> OLD.fence AND NEW.lease_until <=> OLD.lease_until
            AND NEW.max_hold_until <=> OLD.max_hold_until AND NEW.free_at <=> OLD.free_at
            AND NEW.payload <=> OLD.payload AND NEW.remark <=> OLD.remark
            AND NEW.actor <=> OLD.actor AND NEW.locked_at <=> OLD.locked_at
            AND NEW.created_at <=> OLD.created_at AND NEW.updated_at <=> OLD.updated_at) THEN
            SET NEW.rev = OLD.rev + 1, NEW.step = 'by hand';
        END IF;
    END IF;
END;

-- Runs after the row was changed, so that history has what is there: the values that the trigger
-- above is given may still be cut or refused.
CREATE OR REPLACE TRIGGER resource_lock_logged AFTER UPDATE ON resource_lock
FOR EACH ROW
BEGIN
    IF NEW.rev <> OLD.rev THEN
        INSERT INTO resource_log
        VALUES (NEW.resource, NEW.rev,
            SYSDATE(6)
                + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
            NEW.step, NEW.status, NEW.thread_no, NEW.log_no, NEW.session_id, NEW.token,
            NEW.fence, NEW.lease_until, NEW.max_hold_until, NEW.free_at, NEW.remark,
            NEW.actor, USER());
    END IF;
END;

CREATE OR REPLACE TRIGGER resource_lock_deleted AFTER DELETE ON resource_lock
FOR EACH ROW
INSERT INTO resource_log
VALUES (OLD.resource, OLD.rev + 1,
    SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
    'deleted', OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token, OLD.fence,
    OLD.lease_until, OLD.max_hold_until, OLD.free_at, OLD.remark, OLD.actor, USER());

-- Whether a step with this token was ever committed.  The application has no other right on this
-- history.
CREATE OR REPLACE FUNCTION tl_resource_token_seen(
    name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    wanted BINARY(16)) RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN EXISTS (SELECT 1 FROM resource_log WHERE resource = name AND token = wanted);

-- An operator takes the lock from its holder, or lifts a minimum hold, in the caller's transaction,
-- and the act is noted.  It is bound to the fence that was seen; the old holder then fails on the new
-- fence and token.
CREATE OR REPLACE PROCEDURE tl_resource_force(
    IN name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin, IN seen BIGINT UNSIGNED,
    IN by_thread UUID, IN by_log UUID, IN step_token BINARY(16),
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE now_at DATETIME(6) DEFAULT tl_moment();

    CALL tl_guard();
    UPDATE resource_lock
    SET status = 'U', step = 'force unlock', thread_no = by_thread, log_no = by_log,
        session_id = NULL, lease_until = NULL, max_hold_until = NULL, free_at = NULL,
        token = step_token, fence = fence + 1, rev = rev + 1, remark = why, actor = who,
        updated_at = now_at
    WHERE resource = name AND fence = seen AND (status = 'L' OR free_at > now_at);
    IF ROW_COUNT() > 0 THEN
        CALL tl_act_note('resource unlock', name, why, who, by_log, NULL, NULL, NULL, 0, 'done');
    END IF;
END;

-- The state of a row now:
--   held     its holder lives: by its session, or by its own lease; and max_hold is not over
--   kept     nobody holds it, and its minimum hold is not over
--   expired  its holder is dead or too late; whoever asks next takes it over
--   free
CREATE OR REPLACE SQL SECURITY INVOKER VIEW resource_lock_state AS
SELECT r.*, x.program, x.host, x.pid, UTC_TIMESTAMP(6) AS now_at,
    CASE
        WHEN r.status = 'L' AND r.max_hold_until > UTC_TIMESTAMP(6)
            AND IF(r.lease_until IS NULL, x.session_id IS NOT NULL AND x.ended_at IS NULL,
                r.lease_until > UTC_TIMESTAMP(6)) THEN 'held'
        WHEN r.free_at > UTC_TIMESTAMP(6) THEN 'kept'
        WHEN r.status = 'L' THEN 'expired'
        ELSE 'free'
    END AS state
FROM resource_lock r
LEFT JOIN tl_session x ON x.session_id = r.session_id;
