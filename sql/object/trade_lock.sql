-- An ending changes the row that was granted; if the row is gone, the lock is lost, and no row is
-- made.  Only whoever moves a slot copies a row that has ended (sql/fleet checks who).
CREATE OR REPLACE TRIGGER trade_lock_inserted AFTER INSERT ON trade_lock
FOR EACH ROW
BEGIN
    IF NEW.step = _ascii 'end' AND @tl_mover IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644, MESSAGE_TEXT = 'no row to end';
    END IF;
    -- A receipt of the statement (position.sql).  NOW is its moment, for each of its rows.
    IF NEW.sends > 0 AND NEW.session_id IS NOT NULL AND NOT (@tl_receipt <=> NOW(6)) THEN
        SET @tl_receipt = NOW(6);
        INSERT INTO tl_receipt VALUES (NEW.session_id, NEW.token)
        ON DUPLICATE KEY UPDATE token = NEW.token;
    END IF;
    -- They begin with the server's microseconds and rise by one: where none is left, no step goes on,
    -- and no restore is accepted.
    IF (NEW.fence | NEW.rev) >> 62 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a fence or revision beyond all clocks';
    END IF;
END;

-- Keeps what must be true of every change, also of SQL typed by hand.
--
-- A hold begins with a new fence, and ends at max_hold_until by the clock of its own statement:
-- UTC_TIMESTAMP(6) is the moment at which that began, in here too.  So its length is exact, however
-- long the statement waited and whatever the clock did meanwhile.
--
-- While a restore is open, no trade that happens once becomes F, whatever the proof.  Nobody knows
-- of the lost steps that nothing was sent, that the channel does not know the payment, or that the
-- only send was declined.  Only this trigger checks that, and by calling tl_restored(): with a
-- subquery in its place, the server (10.11.19) forgets the definer's rights when a service's
-- account executes a prepared UPDATE of both rows.
--
-- Success by another reference than evidence told is a second payment; after evidence of a final
-- failure it is a contradiction.
CREATE OR REPLACE TRIGGER trade_lock_updated BEFORE UPDATE ON trade_lock
FOR EACH ROW
BEGIN
    -- The library's own steps are through after one short question, failures and what evidence told
    -- of after a few: each is prepared anew for every row.
    IF NEW.rev > OLD.rev AND NEW.status <> 'F' AND NEW.serial_no = OLD.serial_no
        AND NEW.cust_no = OLD.cust_no AND NEW.op_code = OLD.op_code
        AND (NEW.status <> 'Y' OR OLD.success_epoch IS NULL)
        AND NOT (NEW.fence | NEW.rev) >> 62 THEN
        SET NEW.logged_at = SYSDATE(6)
                + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
            NEW.account = USER();
        IF NEW.max_hold_until IS NOT NULL AND NEW.fence <> OLD.fence THEN
            SET NEW.longest_hold_ms = GREATEST(
                IF(NEW.epoch = OLD.epoch, OLD.longest_hold_ms, 0), LEAST(604800000,
                (TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), NEW.max_hold_until) + 999)
                    DIV 1000));
        END IF;
    ELSE
        IF (NEW.fence >> 62 AND NEW.fence > OLD.fence + 1)
            OR (NEW.rev >> 62 AND NEW.rev > OLD.rev + 1) THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'a fence or revision beyond all clocks';
        END IF;
        IF NEW.status = 'F' AND OLD.status = 'P' AND OLD.lane = 'S' AND OLD.repeatable = 0
            AND tl_restored() THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31001,
                MESSAGE_TEXT = 'nothing fails before the restored server is accepted';
        END IF;
        IF NEW.status = 'Y' AND OLD.status = 'P' AND OLD.lane = 'S' AND tl_paid_otherwise(
            NEW.cust_no, NEW.serial_no, NEW.op_code, NEW.epoch, NEW.channel_key,
            NEW.channel_ref) THEN
            SET NEW.conflict = 1;
        END IF;
        IF NOT (NEW.cust_no <=> OLD.cust_no AND NEW.serial_no <=> OLD.serial_no
            AND NEW.op_code <=> OLD.op_code) THEN
            SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
                MESSAGE_TEXT = 'the key of a trade never changes';
        END IF;
        -- NULL, which a server that is not strict takes for 0, is no higher rev.
        IF (NEW.rev > OLD.rev) IS NOT TRUE THEN
            IF NOT (NEW.rev <=> OLD.rev AND NEW.status <=> OLD.status
                AND NEW.token <=> OLD.token AND NEW.fence <=> OLD.fence
                AND NEW.session_id <=> OLD.session_id
                AND NEW.epoch <=> OLD.epoch AND NEW.attempts <=> OLD.attempts
                AND NEW.claims <=> OLD.claims AND NEW.sends <=> OLD.sends
                AND NEW.send_until <=> OLD.send_until AND NEW.parked <=> OLD.parked
                AND NEW.not_found_since <=> OLD.not_found_since
                AND NEW.seen_by_channel <=> OLD.seen_by_channel
                AND NEW.cancel_tried <=> OLD.cancel_tried
                AND NEW.success_epoch <=> OLD.success_epoch
                AND NEW.max_hold_until <=> OLD.max_hold_until
                AND NEW.next_run_at <=> OLD.next_run_at AND NEW.deadline_at <=> OLD.deadline_at
                AND NEW.conflict <=> OLD.conflict AND NEW.exclusive <=> OLD.exclusive
                AND NEW.repeatable <=> OLD.repeatable
                AND NEW.proof <=> OLD.proof
                AND NEW.fingerprint <=> OLD.fingerprint AND NEW.channel <=> OLD.channel
                AND NEW.channel_key <=> OLD.channel_key AND NEW.channel_ref <=> OLD.channel_ref
                AND NEW.amount_minor <=> OLD.amount_minor AND NEW.currency <=> OLD.currency
                AND NEW.batch <=> OLD.batch
                -- Blanking is no step: contents are there as before, or none of them.
                AND ((NEW.payload <=> OLD.payload AND NEW.result <=> OLD.result
                        AND NEW.traceparent <=> OLD.traceparent AND NEW.label <=> OLD.label
                        AND NEW.remark <=> OLD.remark AND NEW.blanked_rev <=> OLD.blanked_rev
                        AND NEW.retryable <=> OLD.retryable)
                    OR (NEW.retryable = 0 AND NEW.payload IS NULL AND NEW.result IS NULL
                        AND NEW.traceparent IS NULL AND NEW.label IS NULL AND NEW.remark <=> 'blanked'
                        AND NEW.blanked_rev <=> NEW.rev))
                AND (OLD.longest_hold_ms IS NULL
                    OR NEW.longest_hold_ms <=> OLD.longest_hold_ms)
                AND NEW.lane <=> OLD.lane AND NEW.step <=> OLD.step
                AND NEW.thread_no <=> OLD.thread_no AND NEW.log_no <=> OLD.log_no
                AND NEW.actor <=> OLD.actor
                AND NEW.created_at <=> OLD.created_at AND NEW.updated_at <=> OLD.updated_at
                AND NEW.logged_at <=> OLD.logged_at AND NEW.account <=> OLD.account
                AND NEW.first_rev <=> OLD.first_rev
                AND NEW.first_logged_at <=> OLD.first_logged_at
                AND NEW.first_account <=> OLD.first_account
                AND NEW.first_thread_no <=> OLD.first_thread_no
                AND NEW.first_log_no <=> OLD.first_log_no
                AND NEW.first_session_id <=> OLD.first_session_id
                AND NEW.first_token <=> OLD.first_token
                AND NEW.first_sends <=> OLD.first_sends
                AND NEW.first_max_hold_until <=> OLD.first_max_hold_until
                AND NEW.first_next_run_at <=> OLD.first_next_run_at
                AND NEW.first_channel_key <=> OLD.first_channel_key) THEN
                SET NEW.rev = OLD.rev + 1, NEW.step = 'by hand';
                IF NOT (NEW.max_hold_until <=> OLD.max_hold_until
                    AND NEW.send_until <=> OLD.send_until) THEN
                    SET NEW.longest_hold_ms = LEAST(604800000, GREATEST(NEW.longest_hold_ms,
                        COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), GREATEST(
                            COALESCE(NEW.max_hold_until, NEW.send_until),
                            COALESCE(NEW.send_until, NEW.max_hold_until))), 0) DIV 1000 + 1));
                END IF;
            END IF;
        END IF;
        IF NEW.rev > OLD.rev THEN
            SET NEW.logged_at = SYSDATE(6)
                    + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
                NEW.account = USER();
        END IF;
    END IF;
END;

-- Keeps the step that a change replaces, once the change is made: an UPDATE IGNORE that a CHECK
-- refuses leaves nothing behind.  If a unique key refuses it, the server still runs this trigger;
-- the step is then kept early, which does not hinder the next change.  Another step of the same
-- revision (NULL) is refused.  A first step stays in the row.
CREATE OR REPLACE TRIGGER trade_lock_kept AFTER UPDATE ON trade_lock
FOR EACH ROW
BEGIN
    IF NEW.rev <> OLD.rev AND NOT (OLD.rev <=> OLD.first_rev) THEN
        INSERT INTO trade_lock_past (cust_no, serial_no, op_code, rev, logged_at, step,
            status, thread_no, log_no, session_id, token, fence, epoch, attempts, claims, sends,
            send_until, max_hold_until, next_run_at, parked, conflict, proof, channel_key,
            channel_ref, remark, actor, account, longest_hold_ms)
        VALUES (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.rev, OLD.logged_at, OLD.step,
            OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token, OLD.fence,
            OLD.epoch, OLD.attempts, OLD.claims, OLD.sends, OLD.send_until,
            OLD.max_hold_until, OLD.next_run_at, OLD.parked, OLD.conflict, OLD.proof,
            OLD.channel_key, OLD.channel_ref, OLD.remark, OLD.actor, OLD.account,
            OLD.longest_hold_ms)
        ON DUPLICATE KEY UPDATE rev = IF(token = VALUES(token), rev, NULL);
    END IF;
END;

-- Removing a row is a step too, the last one of its life.  Purging removes the history afterwards.
CREATE OR REPLACE TRIGGER trade_lock_deleted AFTER DELETE ON trade_lock
FOR EACH ROW
BEGIN
    IF OLD.first_rev < OLD.rev THEN
        INSERT INTO trade_lock_past (cust_no, serial_no, op_code, rev, logged_at, step,
            status, thread_no, log_no, session_id, token, fence, epoch, attempts, claims, sends,
            send_until, max_hold_until, next_run_at, parked, conflict, proof, channel_key,
            channel_ref, remark, actor, account, longest_hold_ms)
        VALUES (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.first_rev, OLD.first_logged_at,
                'ask', 'P', OLD.first_thread_no, OLD.first_log_no, OLD.first_session_id,
                OLD.first_token, OLD.first_rev, 1, 0, 0, OLD.first_sends,
                IF(OLD.first_sends > 0, OLD.first_max_hold_until, NULL),
                OLD.first_max_hold_until, OLD.first_next_run_at, NULL, 0, '-',
                OLD.first_channel_key, NULL, NULL, NULL, OLD.first_account,
                (TIMESTAMPDIFF(MICROSECOND, OLD.created_at, OLD.first_max_hold_until) + 999)
                    DIV 1000);
    END IF;
    INSERT INTO trade_lock_past (cust_no, serial_no, op_code, rev, logged_at, step,
        status, thread_no, log_no, session_id, token, fence, epoch, attempts, claims, sends,
        send_until, max_hold_until, next_run_at, parked, conflict, proof, channel_key,
        channel_ref, remark, actor, account, longest_hold_ms)
    VALUES (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.rev, OLD.logged_at, OLD.step,
        OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token, OLD.fence,
        OLD.epoch, OLD.attempts, OLD.claims, OLD.sends, OLD.send_until,
        OLD.max_hold_until, OLD.next_run_at, OLD.parked, OLD.conflict, OLD.proof,
        OLD.channel_key, OLD.channel_ref, OLD.remark, OLD.actor, OLD.account,
        OLD.longest_hold_ms),
        (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.rev + 1,
            SYSDATE(6)
                + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
            'deleted', OLD.status, OLD.thread_no, OLD.log_no, OLD.session_id, OLD.token,
            OLD.fence, OLD.epoch, OLD.attempts, OLD.claims, OLD.sends, OLD.send_until,
            OLD.max_hold_until, OLD.next_run_at, OLD.parked, OLD.conflict, OLD.proof,
            OLD.channel_key, OLD.channel_ref, OLD.remark, OLD.actor, USER(),
            OLD.longest_hold_ms)
    ON DUPLICATE KEY UPDATE rev = IF(token = VALUES(token), rev, NULL);
END;

-- The first step of each row that has had another since.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW trade_lock_first AS
SELECT cust_no, serial_no, op_code, first_rev AS rev, first_logged_at AS logged_at,
    _ascii 'ask' AS step, _ascii 'P' AS status, first_thread_no AS thread_no,
    first_log_no AS log_no, first_session_id AS session_id,
    first_token AS token, first_rev AS fence, 1 AS epoch, 0 AS attempts, 0 AS claims,
    first_sends AS sends, IF(first_sends > 0, first_max_hold_until, NULL) AS send_until,
    first_max_hold_until AS max_hold_until, first_next_run_at AS next_run_at,
    NULL AS parked, 0 AS conflict,
    _ascii '-' AS proof, first_channel_key AS channel_key,
    NULL AS channel_ref, NULL AS remark, NULL AS actor, first_account AS account,
    (TIMESTAMPDIFF(MICROSECOND, created_at, first_max_hold_until) + 999) DIV 1000
        AS longest_hold_ms
FROM trade_lock WHERE first_rev < rev;

-- Every committed step of every row: those in between, the first ones, and the rows as they are.  A
-- read by cust_no and serial_no reads only the few rows of a trade.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW trade_lock_log AS
SELECT cust_no, serial_no, op_code, rev, logged_at, step, status, thread_no, log_no,
    session_id, token, fence, epoch, attempts, claims, sends, send_until, max_hold_until,
    next_run_at, parked, conflict, proof, channel_key, channel_ref, remark, actor, account,
    longest_hold_ms
FROM trade_lock_past
UNION ALL
SELECT cust_no, serial_no, op_code, rev, logged_at, step, status, thread_no, log_no,
    session_id, token, fence, epoch, attempts, claims, sends, send_until, max_hold_until,
    next_run_at, parked, conflict, proof, channel_key, channel_ref, remark, actor, account,
    longest_hold_ms
FROM trade_lock_first
UNION ALL
SELECT cust_no, serial_no, op_code, rev, logged_at, step, status, thread_no, log_no,
    session_id, token, fence, epoch, attempts, claims, sends, send_until, max_hold_until,
    next_run_at, parked, conflict, proof, channel_key, channel_ref, remark, actor, account,
    longest_hold_ms
FROM trade_lock;

-- Whether a step with this token was ever committed.  The application has no other right on
-- history. It reads the row first and history second, since a step moves from the row to history.
CREATE OR REPLACE FUNCTION tl_token_seen(
    cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    wanted BINARY(16)) RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN EXISTS (SELECT 1 FROM trade_lock
        WHERE cust_no = cust AND serial_no = serial AND op_code = op
            AND (token = wanted OR (first_token = wanted AND first_rev < rev)))
    OR EXISTS (SELECT 1 FROM trade_lock_past
        WHERE cust_no = cust AND serial_no = serial AND op_code = op AND token = wanted);

-- The state of every row now.  The library, the command and a person with a SQL prompt all read it
-- here.
--   alive: the holder's session lives and its max_hold is not over
--   state: of a sync row live, working, in doubt, queued, parked, failed,
--          succeeded;
--          of a retry row working, waiting, parked, closed, succeeded
-- A retry row of an older epoch counts as absent, and so does a standalone one.  A finished trade
-- still names its last session and next moment, but nobody holds it.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW trade_lock_state AS
SELECT t.*,
    x.program, x.host, x.pid,
    r.status AS retry_status, r.epoch AS retry_epoch, r.fence AS retry_fence,
    r.rev AS retry_rev, r.attempts AS retry_attempts, r.claims AS retry_claims,
    r.parked AS retry_parked, r.next_run_at AS retry_next_run_at,
    r.updated_at AS retry_updated_at, r.remark AS retry_remark,
    UTC_TIMESTAMP(6) AS now_at,
    (t.status = 'P' AND x.ended_at IS NULL AND x.session_id IS NOT NULL
        AND t.max_hold_until > UTC_TIMESTAMP(6)) AS alive,
    CASE
        WHEN t.lane = 'R' AND t.status = 'P' THEN 'working'
        WHEN t.lane = 'R' AND t.status = 'F' AND t.parked IS NOT NULL THEN 'parked'
        WHEN t.lane = 'R' AND t.status = 'F' AND t.next_run_at IS NOT NULL THEN 'waiting'
        WHEN t.lane = 'R' AND t.status = 'F' THEN 'closed'
        WHEN t.status = 'Y' THEN 'succeeded'
        WHEN t.status = 'F' THEN 'failed'
        WHEN x.ended_at IS NULL AND x.session_id IS NOT NULL
            AND t.max_hold_until > UTC_TIMESTAMP(6)
            THEN IF(r.status = 'P' AND r.epoch = t.epoch, 'working', 'live')
        WHEN r.status = 'F' AND r.epoch = t.epoch AND r.parked IS NOT NULL THEN 'parked'
        WHEN t.sends > 0 THEN 'in doubt'
        ELSE 'queued'
    END AS state
FROM trade_lock t
LEFT JOIN tl_session x ON x.session_id = t.session_id AND t.status = 'P'
LEFT JOIN trade_lock r ON t.lane = 'S' AND r.cust_no = t.cust_no
    AND r.repeatable = 0 AND r.serial_no = t.serial_no
    AND r.op_code = CONCAT(t.op_code, _ascii '_RETRY' COLLATE ascii_nopad_bin);
