-- Blanking what trades hold of a person.  No role may do it by SQL of its own: the janitors' procedure
-- goes by the time in tl_schema, and the operators' by the words of two of them.

-- Blanks a page of what ended payload_keep_ms ago, behind the page before; the janitors share the walk,
-- and rest for a twentieth of that time at its end.  `anew`: begin the walk of all anew.  The place
-- moves only from where this page began, so a slow janitor takes nobody back.  `told` is how many
-- trades were blanked, and whether the walk goes on; '': the schema does not say that anything is.
CREATE OR REPLACE PROCEDURE tl_blank_page(IN most INT UNSIGNED, IN anew TINYINT,
    OUT told VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
whole:
BEGIN
    DECLARE keep_ms BIGINT UNSIGNED DEFAULT (SELECT payload_keep_ms FROM tl_schema WHERE one = 1);
    DECLARE cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin DEFAULT '';
    DECLARE serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin DEFAULT '';
    DECLARE op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin DEFAULT '';
    DECLARE rests TINYINT DEFAULT 0;
    DECLARE goes_on TINYINT;
    DECLARE named LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

    SET told = IF(keep_ms IS NULL, '', '0 0');
    IF anew THEN
        UPDATE tl_blanking SET cust_no = '', serial_no = '', op_code = '', rest_until = '1970-01-01'
        WHERE one = 1;
    END IF;
    SELECT cust_no, serial_no, op_code, rest_until > tl_moment() INTO cust, serial, op, rests
    FROM tl_blanking WHERE one = 1;
    IF keep_ms IS NULL OR rests THEN
        LEAVE whole;
    END IF;
    CALL tl_purge_page(3, keep_ms, tl_certain_cut(keep_ms), most, cust, serial, op, told, named);
    SET goes_on = SUBSTRING_INDEX(SUBSTRING_INDEX(told, ' ', 2), ' ', -1) >= most;
    UPDATE tl_blanking
    SET cust_no = IF(goes_on, SUBSTRING_INDEX(SUBSTRING_INDEX(told, ' ', 3), ' ', -1), ''),
        serial_no = IF(goes_on, SUBSTRING_INDEX(SUBSTRING_INDEX(told, ' ', 4), ' ', -1), ''),
        op_code = IF(goes_on, SUBSTRING_INDEX(SUBSTRING_INDEX(told, ' ', 5), ' ', -1), ''),
        rest_until = IF(goes_on, '1970-01-01', tl_moment() + INTERVAL keep_ms * 50 MICROSECOND)
    WHERE one = 1 AND cust_no = cust AND serial_no = serial AND op_code = op;
    SET told = CONCAT(SUBSTRING_INDEX(told, ' ', 1), ' ', goes_on);
END;

-- What acts call a customer who is to be forgotten, so that they do not keep the number itself.
CREATE OR REPLACE FUNCTION tl_forget_name(
    cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin)
RETURNS VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin READS SQL DATA SQL SECURITY DEFINER
RETURN (SELECT LEFT(SHA2(CONCAT(installation, ' ', cust), 256), 32) FROM tl_schema WHERE one = 1);

-- When another person proposed last, within seven days, to forget the customer; NULL: nobody did.  A
-- proposal counts once it is committed, whatever the session's isolation.
CREATE OR REPLACE FUNCTION tl_forget_proposed(
    name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS DATETIME(6) NOT DETERMINISTIC READS SQL DATA SQL SECURITY DEFINER
RETURN (SELECT MAX(begun_at) FROM tl_act FORCE INDEX (said)
    WHERE what = 'forget propose' AND said = name
        AND begun_at > tl_moment() - INTERVAL 7 DAY
        AND tl_account_name(account) <> tl_account_name(USER())
    LOCK IN SHARE MODE);

-- Blanks a page of what a customer has had that ended before another person proposed it, in an act of
-- this account's that is under way.  Called by whoever proposed it alone, it does nothing.
CREATE OR REPLACE PROCEDURE tl_forget_page(IN act BIGINT UNSIGNED, IN most INT UNSIGNED,
    IN cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    IN after_op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    OUT told VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE named LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE cut DATETIME(6);

    CALL tl_guard();
    SET cut = tl_forget_proposed(tl_forget_name(cust));
    -- NULL is what a statement that was killed tells.
    IF NOT COALESCE(cut IS NOT NULL AND EXISTS (SELECT 1 FROM tl_act
        WHERE act_no = act AND what = 'forget confirm' AND ended_at IS NULL
            AND said = tl_forget_name(cust)
            AND tl_account_name(account) = tl_account_name(USER())), 0) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'nobody else has proposed to forget this customer';
    END IF;
    CALL tl_purge_page(4, 0, cut, most, cust, after_serial, after_op, told, named);
    UPDATE tl_act SET done = done + SUBSTRING_INDEX(told, ' ', 1) WHERE act_no = act;
END;
