-- What tells one reference from another: all but blanks, which are set in another way on a
-- statement.  NULL: none.
CREATE OR REPLACE FUNCTION tl_bare_ref(
    ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN NULLIF(REPLACE(ref, ' ', ''), '');

-- Whether evidence contradicts the row that it is about: 1 another outcome of the same payment, or
-- success of an older epoch or another key; 2 another payment than the trade's, by its reference
-- (paid_ref: what is known already as paid), or another amount or currency than the trade told, or
-- money that came back.  What is not told contradicts nothing.
CREATE OR REPLACE FUNCTION tl_contradicts(
    row_status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin, own TINYINT,
    paid_ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, row_minor BIGINT,
    row_currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin,
    outcome VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin, final TINYINT,
    ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, minor BIGINT,
    currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin)
RETURNS TINYINT DETERMINISTIC NO SQL SQL SECURITY DEFINER
RETURN CASE
    WHEN outcome = 'SUCCEEDED' AND (COALESCE(tl_bare_ref(ref) <> tl_bare_ref(paid_ref), 0)
        OR COALESCE(minor < 0, 0) OR COALESCE(minor <> row_minor, 0)
        OR COALESCE(currency <> row_currency, 0)) THEN 2
    WHEN outcome = 'SUCCEEDED' THEN NOT own OR row_status = 'F'
    WHEN outcome IN ('FAILED', 'DECLINED') THEN own AND row_status = 'Y'
    ELSE outcome = 'PENDING' AND final AND row_status = 'F'
END;

-- The reference of the trade's payment, as far as it is known that it was paid.
CREATE OR REPLACE FUNCTION tl_paid_ref(
    cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    row_status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin, row_epoch INT UNSIGNED,
    row_ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
READS SQL DATA SQL SECURITY DEFINER
RETURN COALESCE(IF(row_status = 'Y', row_ref, NULL), (SELECT channel_ref FROM trade_evidence
    WHERE cust_no = cust AND serial_no = serial AND op_code = op AND epoch = row_epoch
        AND outcome = 'SUCCEEDED' AND contradicts = 0 AND channel_ref IS NOT NULL
    ORDER BY evidence_id LIMIT 1));

-- Whether what was filed of the epoch contradicts the payment by which a trade succeeds, though it
-- did not contradict the row while the trade was in process: another payment, so that it was paid
-- twice; or that this one failed for good, unless two have found since that it was paid.
CREATE OR REPLACE FUNCTION tl_paid_otherwise(
    cust VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin,
    op VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin, row_epoch INT UNSIGNED,
    row_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    row_ref VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS TINYINT READS SQL DATA SQL SECURITY DEFINER
RETURN EXISTS (SELECT 1 FROM trade_evidence e
    WHERE e.cust_no = cust AND e.serial_no = serial AND e.op_code = op AND e.epoch = row_epoch
        AND COALESCE(e.channel_key = row_key, 1)
        AND ((e.outcome = 'SUCCEEDED' AND e.contradicts < 2
                AND tl_bare_ref(e.channel_ref) <> tl_bare_ref(row_ref))
            OR (e.outcome = 'FAILED' AND e.final AND NOT EXISTS (SELECT 1 FROM trade_resolution d
                WHERE d.cust_no = cust AND d.serial_no = serial AND d.op_code = op
                    AND d.epoch = row_epoch AND d.verdict = 'Y' AND d.part = 2
                    AND d.decided_at >= e.filed_at))));

-- The server itself says who filed evidence, when, and whether it contradicts the row, also of SQL
-- typed by hand.  A copy of a row that moves keeps what it says.
CREATE OR REPLACE TRIGGER trade_evidence_inserted BEFORE INSERT ON trade_evidence
FOR EACH ROW
whole:
BEGIN
    DECLARE found TINYINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET found = NULL;

    CALL tl_guard();
    IF tl_slot_copies() THEN
        LEAVE whole;
    END IF;
    -- Whoever chose the last number would end all filing.
    IF NEW.evidence_id <> 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
            MESSAGE_TEXT = 'evidence gets its number from the server';
    END IF;
    SELECT tl_contradicts(status, epoch = NEW.epoch AND (NEW.channel_key IS NULL
            OR channel_key IS NULL OR channel_key = NEW.channel_key),
        tl_paid_ref(cust_no, serial_no, op_code, status, epoch, channel_ref), amount_minor,
        currency, NEW.outcome, NEW.final, NEW.channel_ref, NEW.amount_minor, NEW.currency)
    INTO found
    FROM trade_lock
    WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no AND op_code = NEW.op_code
    FOR UPDATE;
    IF found IS NULL AND NEW.outcome = 'SUCCEEDED' AND COALESCE(NEW.amount_minor, 0) >= 0 THEN
        CALL tl_restore_filed(NEW.cust_no);
    END IF;
    SET NEW.contradicts = COALESCE(found, 0), NEW.account = USER(), NEW.filed_at = tl_moment();
END;

-- What a piece of evidence does to the trade, in the same statement.  Success of this epoch is
-- noted on the row, unless it is another payment's, and so is a final failure, which its ending asks
-- for.  What contradicts the row sets the conflict.
-- Token and fence stay, so the holder is not disturbed.  A waiting or parked lane of this epoch
-- becomes due at once; one that is held, when it is opened, since the revision tells of whatever was
-- filed meanwhile (open_lane.sql).
CREATE OR REPLACE TRIGGER trade_evidence_filed AFTER INSERT ON trade_evidence
FOR EACH ROW
whole:
BEGIN
    DECLARE now_status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE own, success, doubted TINYINT DEFAULT 0;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET now_status = NULL;

    IF tl_slot_copies() THEN
        LEAVE whole;
    END IF;
    SELECT status, epoch = NEW.epoch AND (NEW.channel_key IS NULL OR channel_key IS NULL
        OR channel_key = NEW.channel_key)
    INTO now_status, own
    FROM trade_lock
    WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no AND op_code = NEW.op_code
    FOR UPDATE;
    IF now_status IS NOT NULL THEN
        SET success = NEW.outcome = 'SUCCEEDED' AND NEW.contradicts < 2,
            doubted = own AND now_status = 'P';
        IF NEW.contradicts OR doubted THEN
            UPDATE trade_lock FORCE INDEX (PRIMARY)
            SET step = 'evidence', rev = rev + 1,
                thread_no = COALESCE(NEW.thread_no, thread_no),
                success_epoch = IF(success AND own, epoch, COALESCE(success_epoch,
                    IF(doubted AND NEW.outcome = 'FAILED' AND NEW.final, 0, NULL))),
                conflict = conflict OR NEW.contradicts,
                seen_by_channel = seen_by_channel OR (doubted
                    AND NEW.outcome IN ('SUCCEEDED', 'ACCEPTED', 'PENDING')),
                actor = NULL, updated_at = tl_moment()
            WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no
                AND op_code = NEW.op_code;
        END IF;
        IF doubted THEN
            UPDATE trade_lock FORCE INDEX (PRIMARY)
            SET step = 'evidence', rev = rev + 1, fence = fence + 1,
                thread_no = COALESCE(NEW.thread_no, thread_no),
                next_run_at = tl_moment(), actor = NULL, updated_at = tl_moment()
            WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no
                AND op_code = CONCAT(NEW.op_code, _ascii '_RETRY') AND status = 'F'
                AND epoch = NEW.epoch AND (next_run_at IS NOT NULL OR parked IS NOT NULL);
        END IF;
    END IF;
END;

-- Success of trades that are not here: lost in a restore, or of nobody.  Money that came back is none.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW trade_evidence_lost AS
SELECT e.* FROM trade_evidence e
LEFT JOIN trade_lock t ON t.cust_no = e.cust_no AND t.serial_no = e.serial_no
    AND t.op_code = e.op_code
WHERE e.outcome = 'SUCCEEDED' AND COALESCE(e.amount_minor, 0) >= 0 AND t.cust_no IS NULL;
