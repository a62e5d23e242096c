-- An operator pauses a channel, or has it go on: for one operation, or with op '' as a whole.  Only
-- a channel that a workflow has registered can be paused, since a name that was mistyped would
-- pause nothing.  What is so already is refused, and nothing is changed.  The act is put on record
-- in the caller's transaction.
CREATE OR REPLACE PROCEDURE tl_channel_decide(
    IN name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN pauses TINYINT, IN by_log UUID,
    IN who VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN why VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE is_paused TINYINT;

    IF @@in_transaction = 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'a channel is decided about in one transaction';
    END IF;
    IF COALESCE(who, '') = '' OR COALESCE(why, '') = '' OR tl_account_name(USER()) IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'an operator says who, and why, and has an account with a name';
    END IF;
    -- NULL is what a statement that was killed tells.
    IF NOT COALESCE(EXISTS (SELECT 1 FROM trade_channel
        WHERE channel = name AND (op = '' OR op_code = op)), 0) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'no workflow has registered this channel and operation';
    END IF;
    INSERT IGNORE INTO trade_channel (channel, op_code) VALUES (name, op);
    SET is_paused = (SELECT paused FROM trade_channel
        WHERE channel = name AND op_code = op FOR UPDATE);
    IF COALESCE(is_paused = pauses, 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'the channel is as it is to be already';
    END IF;
    UPDATE trade_channel
    SET paused = pauses, decided_at = UTC_TIMESTAMP(6), reason = why, actor = who,
        account = USER()
    WHERE channel = name AND op_code = op;
    CALL tl_act_note(IF(pauses, 'pause', 'resume'), TRIM(CONCAT('channel ', name, ' ', op)), why, who,
        by_log, NULL, NULL, NULL, 0, 'done');
END;
