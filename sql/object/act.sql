-- Operators' acts (schema.sql).  No role writes their tables: these procedures do,
-- under the name of whoever is connected, and nobody writes in an act of somebody else.

-- Begins an act.  Only what a job does needs no reason.
CREATE OR REPLACE PROCEDURE tl_act_begin(
    IN kind VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin,
    IN words VARCHAR(1023) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN by_log UUID, IN rows_planned BIGINT UNSIGNED, OUT act BIGINT UNSIGNED)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    CALL tl_guard();
    IF tl_account_name(USER()) IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator has an account with a name';
    END IF;
    IF COALESCE(why, '') = '' AND kind NOT IN ('purge', 'audit') THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator says why';
    END IF;
    INSERT INTO tl_act (what, said, reason, actor, account, log_no, planned, begun_at)
    VALUES (kind, COALESCE(words, ''), COALESCE(why, ''), COALESCE(who, ''), USER(), by_log,
        COALESCE(rows_planned, 0), tl_moment());
    SET act = LAST_INSERT_ID();
END;

-- Writes what became of a row, in the transaction that did it, once: a second call does nothing.
CREATE OR REPLACE PROCEDURE tl_act_row(IN act BIGINT UNSIGNED, IN number BIGINT UNSIGNED,
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN seen BIGINT UNSIGNED, IN became VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin,
    IN was_done TINYINT)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    IF @@in_transaction = 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a row is written in the transaction that did it';
    END IF;
    -- NULL is what a statement that was killed tells.
    IF NOT COALESCE(EXISTS (SELECT 1 FROM tl_act WHERE act_no = act AND ended_at IS NULL
        AND tl_account_name(account) = tl_account_name(USER())), 0) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'no such act of this account is under way';
    END IF;
    INSERT INTO tl_act_row (act_no, row_no, cust_no, serial_no, op_code, fence, result, acted_at)
    VALUES (act, number, cust, serial, op, seen, became, tl_moment())
    ON DUPLICATE KEY UPDATE row_no = number;
    IF ROW_COUNT() = 1 THEN
        UPDATE tl_act
        SET done = done + IF(was_done, 1, 0), skipped = skipped + IF(was_done, 0, 1)
        WHERE act_no = act;
    END IF;
END;

-- Ends an act, with what it came to; a second call does nothing.
CREATE OR REPLACE PROCEDURE tl_act_end(IN act BIGINT UNSIGNED,
    IN sums VARCHAR(1023) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
UPDATE tl_act SET ended_at = tl_moment(), counts = sums
WHERE act_no = act AND ended_at IS NULL AND tl_account_name(account) = tl_account_name(USER());

-- Notes an act that one transaction does, within it: about one trade, or (cust NULL) about none.
CREATE OR REPLACE PROCEDURE tl_act_note(
    IN kind VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin,
    IN words VARCHAR(1023) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN by_log UUID,
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin, IN seen BIGINT UNSIGNED,
    IN became VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE act BIGINT UNSIGNED;

    IF @@in_transaction = 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an act is noted in the transaction that does it';
    END IF;
    -- Services call this, too, and none of them is one of two operators.
    IF kind LIKE 'forget%' OR kind LIKE 'resolve%' OR kind LIKE 'audit%' THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'such an act is begun and ended, by an operator';
    END IF;
    CALL tl_act_begin(kind, words, why, who, by_log, cust IS NOT NULL, act);
    IF cust IS NOT NULL THEN
        CALL tl_act_row(act, 1, cust, serial, op, seen, became, 1);
    END IF;
    CALL tl_act_end(act, NULL);
END;

-- Removes acts that began before the cut, each with its rows; at most about so many rows a call.
-- An act is kept as long as the trades that it was about: both go by the same age.
CREATE OR REPLACE PROCEDURE tl_purge_acts(IN older_ms BIGINT UNSIGNED,
    IN most INT UNSIGNED, OUT purged INT UNSIGNED)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE cut DATETIME(6) DEFAULT tl_purge_cut(older_ms);
    DECLARE oldest BIGINT UNSIGNED;
    DECLARE removed INT UNSIGNED;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET oldest = NULL;

    SET purged = 0;
    walk: LOOP
        SELECT act_no INTO oldest FROM tl_act
        WHERE begun_at < cut ORDER BY begun_at, act_no LIMIT 1;
        IF oldest IS NULL OR purged >= most THEN
            LEAVE walk;
        END IF;
        DELETE FROM tl_act_row WHERE act_no = oldest ORDER BY row_no LIMIT most;
        SET removed = ROW_COUNT(), purged = purged + removed;
        IF removed < most THEN
            DELETE FROM tl_act WHERE act_no = oldest;
            SET purged = purged + 1;
        END IF;
    END LOOP;
    CALL tl_purge_act(older_ms, purged);
END;
