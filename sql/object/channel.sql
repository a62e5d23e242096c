-- What is asked of every decision about a channel: a transaction of the caller's, somebody who says
-- why, and, since a name that was mistyped would decide nothing, a channel that a workflow has
-- registered.  Then it has a row of its own for op, which may be '' for all operations.  '*' stands
-- for all channels, and for what names none; nobody registers it.
CREATE OR REPLACE PROCEDURE tl_channel_may_decide(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    CALL tl_guard();
    IF @@in_transaction = 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a channel is decided about in one transaction';
    END IF;
    IF COALESCE(who, '') = '' OR COALESCE(why, '') = '' OR tl_account_name(USER()) IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator says who, and why, and has an account with a name';
    END IF;
    -- NULL is what a statement that was killed tells.
    IF NOT COALESCE(name = '*' AND op = '' OR EXISTS (SELECT 1 FROM trade_channel
        WHERE channel = name AND (op = '' OR op_code = op)), 0) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'no workflow has registered this channel and operation';
    END IF;
    INSERT IGNORE INTO trade_channel (channel, op_code) VALUES (name, op);
END;

-- An operator pauses a channel, or has it go on: for one operation, or with op '' as a whole.  What
-- is so already is refused, and nothing is changed.  The act is put on record in the caller's
-- transaction.
CREATE OR REPLACE PROCEDURE tl_channel_decide(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN pauses TINYINT, IN by_log UUID,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_paused TINYINT;

    CALL tl_channel_may_decide(name, op, who, why);
    SET is_paused = (SELECT paused FROM trade_channel
        WHERE channel = name AND op_code = op FOR UPDATE);
    IF COALESCE(is_paused = pauses, 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the channel is as it is to be already';
    END IF;
    UPDATE trade_channel
    SET paused = pauses, decided_at = tl_moment(), reason = why, actor = who,
        account = USER()
    WHERE channel = name AND op_code = op;
    CALL tl_act_note(IF(pauses, 'pause', 'resume'), TRIM(CONCAT('channel ', name, ' ', op)), why, who,
        by_log, NULL, NULL, NULL, 0, 'done');
END;

-- An operator limits a channel, for one operation or with op '' for all together, or lifts the
-- limit (both numbers NULL).  What is so already is refused.  What was given away stays so: the
-- moment of the next send and the sessions' permits.
CREATE OR REPLACE PROCEDURE tl_channel_limit(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN most INT UNSIGNED, IN rate INT UNSIGNED, IN by_log UUID,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_so TINYINT;

    CALL tl_channel_may_decide(name, op, who, why);
    INSERT IGNORE INTO trade_channel_limit
        (channel, op_code, decided_at, reason, actor, account)
        VALUES (name, op, tl_moment(), why, who, USER());
    SET is_so = (SELECT sends <=> most AND per_second <=> rate FROM trade_channel_limit
        WHERE channel = name AND op_code = op FOR UPDATE);
    IF COALESCE(is_so, 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the channel is as it is to be already';
    END IF;
    UPDATE trade_channel_limit
    SET sends = most, per_second = rate, decided_at = tl_moment(), reason = why, actor = who,
        account = USER()
    WHERE channel = name AND op_code = op;
    CALL tl_act_note(IF(most IS NULL AND rate IS NULL, 'unlimit', 'limit'),
        TRIM(CONCAT('channel ', name, ' ', op)), why, who, by_log, NULL, NULL, NULL, 0, 'done');
END;

-- A process takes its share of a limited channel.  It commits by itself, as a purge does.
--   used     so many sends of this session are under way; it begins no more before the answer
--   want     so many it could use at a time, of which hold_ms is the longest
--   claims   so many sends it would begin in the next moment
--   latest   the latest moment that it can be, in microseconds, by a clock that was not set; 0: the
--            clock is not trusted
--   share    what came of it: how many at a time this session may have from now on; how many sends
--            it may begin; in how many microseconds the first of them, each other one an interval
--            after the one before it; and the interval in microseconds.  Empty: no such limit.
--
-- All who take lock the limit's row, so what others have and the next moment are true until the
-- commit.  The other sessions' permits count until their session was ended and their longest send
-- is over; a process that was killed is found dead by others, and what it sent may still be at the
-- channel.  A lost answer is taken as "no more than used": the row may have more, never less, since
-- used was told by whoever began no more.  Each session that wants some has its part before another
-- one has more; if there are fewer permits than sessions, they take turns.  The sessions are read
-- without a lock, so no heartbeat waits.  A next moment that is further away than anybody gives
-- away was told by another clock.
--
-- What a killed process had counts for nothing once its longest send is over.  A day later, when no
-- clock that is set back makes it count again, its row is removed, one with each taking: under the
-- limit's row, and by its key, so nobody's heartbeat waits for that either.
CREATE OR REPLACE PROCEDURE tl_channel_share(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN own UUID, IN used INT UNSIGNED, IN want INT UNSIGNED, IN hold BIGINT UNSIGNED,
    IN claims INT UNSIGNED, IN latest BIGINT,
    OUT share VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_there TINYINT DEFAULT 0;
    DECLARE most, rate, had, goal, taken, short, takers, part INT UNSIGNED DEFAULT NULL;
    DECLARE next, now_at DATETIME(6);
    DECLARE gone UUID DEFAULT NULL;
    DECLARE interval_us, ahead_us BIGINT DEFAULT 0;
    DECLARE given BIGINT DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    SET share = '';
    START TRANSACTION;
    SELECT 1, l.sends, l.per_second, l.next_at INTO is_there, most, rate, next
        FROM trade_channel_limit l WHERE l.channel = name AND l.op_code = op FOR UPDATE;
    SET now_at = tl_moment();
    IF is_there AND most IS NOT NULL THEN
        SELECT COALESCE(SUM(s.session_id IS NOT NULL AND s.ended_at IS NULL
                AND p.wanted > p.permits), 0),
            COALESCE(SUM(s.session_id IS NOT NULL AND s.ended_at IS NULL AND p.wanted > 0), 0),
            MIN(IF(s.session_id IS NULL OR s.ended_at + INTERVAL p.hold_ms * 1000 MICROSECOND
                < now_at - INTERVAL 1 DAY, p.session_id, NULL))
            INTO short, takers, gone
            FROM trade_channel_permit p FORCE INDEX (PRIMARY)
            LEFT JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = p.session_id
            WHERE p.channel = name AND p.op_code = op AND p.session_id <> own;
        SET part = most DIV (takers + 1);
        SELECT COALESCE(SUM(GREATEST(p.permits,
                IF(s.ended_at IS NULL, LEAST(p.wanted, part), 0))), 0)
            INTO taken
            FROM trade_channel_permit p FORCE INDEX (PRIMARY)
            LEFT JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = p.session_id
            WHERE p.channel = name AND p.op_code = op AND p.session_id <> own
                AND s.session_id IS NOT NULL AND (s.ended_at IS NULL
                    OR s.ended_at + INTERVAL p.hold_ms * 1000 MICROSECOND
                        >= LEAST(now_at, CAST('1970-01-01' AS DATETIME(6))
                            + INTERVAL latest MICROSECOND));
        SET had = COALESCE((SELECT p.permits FROM trade_channel_permit p
            WHERE p.channel = name AND p.op_code = op AND p.session_id = own), 0);
        SET goal = IF(taken < most, LEAST(want, most - taken), 0);
        IF part = 0 AND had > 0 AND short > 0 THEN
            SET goal = 0;
        END IF;
        IF want > 0 OR used > 0 THEN
            INSERT INTO trade_channel_permit
                (channel, op_code, session_id, permits, wanted, hold_ms)
                VALUES (name, op, own, GREATEST(goal, used), want, hold)
            ON DUPLICATE KEY UPDATE permits = GREATEST(goal, used), wanted = want,
                hold_ms = GREATEST(hold_ms, hold);
        END IF;
    END IF;
    -- Also where the limit was lifted: what is left would count as soon as there is another one.
    IF want = 0 AND used = 0 THEN
        DELETE FROM trade_channel_permit
        WHERE channel = name AND op_code = op AND session_id = own;
    END IF;
    IF gone IS NOT NULL THEN
        DELETE FROM trade_channel_permit
        WHERE channel = name AND op_code = op AND session_id = gone;
    END IF;
    IF is_there AND rate IS NOT NULL THEN
        SET interval_us = CEIL(1000000 / rate);
        IF COALESCE(next < now_at OR next > now_at + INTERVAL 2 SECOND, 1) THEN
            SET next = now_at;
        END IF;
        SET ahead_us = TIMESTAMPDIFF(MICROSECOND, now_at, next);
        -- What begins within half a second, and one at least of those that are slower.
        SET given = LEAST(claims, IF(ahead_us < 500000,
            1 + (500000 - ahead_us) DIV interval_us, 0));
        IF given > 0 THEN
            UPDATE trade_channel_limit
            SET next_at = next + INTERVAL given * interval_us MICROSECOND
            WHERE channel = name AND op_code = op;
        END IF;
    END IF;
    COMMIT;
    IF is_there THEN
        SET share = CONCAT_WS(' ', COALESCE(goal, 0), given, ahead_us, interval_us);
    END IF;
END;

-- An operator gives a channel a breaker, for one operation or with op '' for all together, or takes
-- it away (fails NULL).  What is so already is refused.  A breaker that is open stays open under
-- its new numbers; without a breaker the channel is open to all.  What was counted before is void.
CREATE OR REPLACE PROCEDURE tl_channel_breaker(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN fails INT UNSIGNED, IN percent INT UNSIGNED, IN seconds INT UNSIGNED,
    IN every INT UNSIGNED, IN by_log UUID,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_so TINYINT;

    CALL tl_channel_may_decide(name, op, who, why);
    INSERT IGNORE INTO trade_channel_breaker
        (channel, op_code, decided_at, reason, actor, account)
        VALUES (name, op, tl_moment(), why, who, USER());
    SET is_so = (SELECT unknowns <=> fails
            AND (fails IS NULL OR (share <=> percent AND window_s <=> seconds AND probe_s = every))
        FROM trade_channel_breaker WHERE channel = name AND op_code = op FOR UPDATE);
    IF COALESCE(is_so, 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the channel is as it is to be already';
    END IF;
    UPDATE trade_channel_breaker
    SET unknowns = fails, share = percent, window_s = seconds,
        probe_s = IF(fails IS NULL, probe_s, every), era = era + 1,
        opened_at = IF(fails IS NULL, NULL, opened_at),
        next_at = IF(fails IS NULL, NULL, next_at),
        in_a_row = 0, window_at = IF(opened_at IS NULL, NULL, window_at),
        window_sends = IF(opened_at IS NULL, 0, window_sends), window_unknowns = 0,
        decided_at = tl_moment(), reason = why, actor = who, account = USER()
    WHERE channel = name AND op_code = op;
    CALL tl_act_note(IF(fails IS NULL, 'unbreak', 'breaker'),
        TRIM(CONCAT('channel ', name, ' ', op)), why, who, by_log, NULL, NULL, NULL, 0, 'done');
END;

-- A process tells what it counted since it told last, or what its probe came to.  It commits by
-- itself, as a purge does.
--   seen       the era in which it was counted
--   probe      the number of its probe, which is over; 0: none, and the numbers count
--   answered   1: the channel gave an answer, to the probe or to a send; 2: nothing was called by the
--              probe, so the next one need not wait
--   tail       so many unknown outcomes came after the last answer, or at all
--   fails      so many of all these sends are unknown
--   ended      so many sends ended
--   state      what came of it: whether it is open, its era, how many were told in a row, and in
--              how many milliseconds a probe may begin.  Empty: no such breaker.
--
-- All who tell, and all who probe, lock the breaker's row, so of many that are at the bound one
-- opens it, once.  What was counted before it opened or was decided about is of an earlier era, and
-- void: sends that were under way at the opening neither close it nor open it again.  An open
-- breaker is closed by its last probe alone: one whose time was over, and after which another one
-- began, says nothing.  A probe that is told twice, after a lost answer, finds it closed, or moves
-- the next one.  While it is open, what is in a row are probes without an answer, by which processes
-- know whose turn the next one is, and the window is the last probe's: since when, and whether it
-- goes on (window_sends 1).  Only whoever looks at a breaker reads that; no process goes by it.
-- "In a row" is by the order in which processes tell, not in which the sends ended.
CREATE OR REPLACE PROCEDURE tl_channel_told(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN seen BIGINT UNSIGNED, IN probe BIGINT UNSIGNED, IN answered TINYINT,
    IN tail BIGINT UNSIGNED, IN fails BIGINT UNSIGNED, IN ended BIGINT UNSIGNED,
    OUT state VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_there TINYINT DEFAULT 0;
    DECLARE most, percent, seconds, every INT UNSIGNED DEFAULT NULL;
    DECLARE is_era, told, sends, unknown_ones, last_probe, had BIGINT UNSIGNED DEFAULT 0;
    DECLARE since, begun, next, now_at DATETIME(6) DEFAULT NULL;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    SET state = '';
    START TRANSACTION;
    SELECT 1, b.unknowns, b.share, b.window_s, b.probe_s, b.era, b.opened_at, b.in_a_row,
            b.window_at, b.window_sends, b.window_unknowns, b.probe_no, b.next_at, b.hold_ms
        INTO is_there, most, percent, seconds, every, is_era, since, told,
            begun, sends, unknown_ones, last_probe, next, had
        FROM trade_channel_breaker b
        WHERE b.channel = name AND b.op_code = op AND b.unknowns IS NOT NULL FOR UPDATE;
    SET now_at = tl_moment();
    IF is_there AND since IS NOT NULL AND probe > 0 AND probe = last_probe THEN
        SET next = now_at + INTERVAL IF(answered = 2, 0, every) SECOND;
        SET told = told + IF(answered = 0, 1, 0);
        IF answered = 1 THEN
            SET since = NULL, next = NULL, told = 0, begun = NULL;
        END IF;
        UPDATE trade_channel_breaker
        SET opened_at = since, next_at = next, in_a_row = told, window_at = begun,
            window_sends = 0, window_unknowns = 0
        WHERE channel = name AND op_code = op;
    ELSEIF is_there AND since IS NULL AND probe = 0 AND seen = is_era THEN
        SET told = IF(answered, tail, told + tail);
        -- A window of the future was begun by another clock.
        IF COALESCE(begun > now_at OR begun + INTERVAL seconds SECOND <= now_at, 1) THEN
            SET begun = now_at, sends = 0, unknown_ones = 0;
        END IF;
        SET sends = sends + ended, unknown_ones = unknown_ones + fails;
        IF told >= most OR COALESCE(unknown_ones >= most
            AND unknown_ones * 100 >= percent * sends, 0) THEN
            SET since = now_at, next = now_at + INTERVAL every SECOND, is_era = is_era + 1,
                told = 0, begun = NULL, sends = 0, unknown_ones = 0;
        END IF;
        UPDATE trade_channel_breaker
        SET opened_at = since, next_at = next, in_a_row = told, window_at = begun,
            window_sends = sends, window_unknowns = unknown_ones, era = is_era,
            opened = opened + IF(since IS NULL, 0, 1)
        WHERE channel = name AND op_code = op;
    END IF;
    COMMIT;
    -- Set by another clock, as channel_gates says.
    IF next > now_at + INTERVAL GREATEST(every * 1000, had) * 1000 MICROSECOND THEN
        SET next = now_at;
    END IF;
    IF is_there THEN
        SET state = CONCAT_WS(' ', since IS NOT NULL, is_era, told,
            COALESCE(TIMESTAMPDIFF(MICROSECOND, now_at, next) DIV 1000, 0));
    END IF;
END;

-- A process would probe an open breaker: would send to its channel, or ask it, one call at a time.
-- It commits by itself.
--   own      the number of the probe that it has, which goes on for hold; 0: none
--   hold     the probe is over after so many milliseconds
--   latest   as tl_channel_share() has it
--   state    whether it is open, the number of the probe that it has now, or 0, and in how many
--            milliseconds another try is worth it.  Empty: no such breaker.
--
-- All who would probe lock the breaker's row, so one has it.  A process that is killed at its probe
-- frees it by being late: nothing of it is under way any more when the hold is over.  A lost answer
-- is taken as "no probe": it then stands until its hold is over.  A moment that is further away
-- than anybody sets was set by another clock, and is brought as near as it may be.
CREATE OR REPLACE PROCEDURE tl_channel_probe(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN own BIGINT UNSIGNED, IN hold BIGINT UNSIGNED, IN latest BIGINT,
    OUT state VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_there TINYINT DEFAULT 0;
    DECLARE every INT UNSIGNED DEFAULT NULL;
    DECLARE last_probe, had, held BIGINT UNSIGNED DEFAULT 0;
    DECLARE since, next, furthest, now_at DATETIME(6) DEFAULT NULL;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    SET state = '';
    START TRANSACTION;
    SELECT 1, b.probe_s, b.opened_at, b.probe_no, b.next_at, b.hold_ms
        INTO is_there, every, since, last_probe, next, had
        FROM trade_channel_breaker b
        WHERE b.channel = name AND b.op_code = op AND b.unknowns IS NOT NULL FOR UPDATE;
    SET now_at = tl_moment();
    IF is_there AND since IS NOT NULL THEN
        SET furthest = now_at + INTERVAL GREATEST(every * 1000, had) * 1000 MICROSECOND;
        IF own > 0 AND own = last_probe THEN
            SET held = own, next = now_at + INTERVAL hold * 1000 MICROSECOND;
        ELSEIF COALESCE(next <= LEAST(now_at, CAST('1970-01-01' AS DATETIME(6))
                + INTERVAL latest MICROSECOND), 1) THEN
            SET held = last_probe + 1, next = now_at + INTERVAL hold * 1000 MICROSECOND;
        END IF;
        IF held > 0 THEN
            UPDATE trade_channel_breaker
            SET window_at = IF(probe_no = held, window_at, now_at), window_sends = 1,
                probe_no = held, next_at = next, hold_ms = hold
            WHERE channel = name AND op_code = op;
        ELSEIF next > furthest THEN
            SET next = furthest;
            UPDATE trade_channel_breaker SET next_at = next WHERE channel = name AND op_code = op;
        END IF;
    END IF;
    COMMIT;
    IF is_there THEN
        SET state = CONCAT_WS(' ', since IS NOT NULL, held,
            COALESCE(GREATEST(TIMESTAMPDIFF(MICROSECOND, now_at, next) DIV 1000, 0), 0));
    END IF;
END;
