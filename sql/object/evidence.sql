-- The server itself says who filed evidence, and when.  A copy of a row that moves keeps what it
-- says.
CREATE OR REPLACE TRIGGER trade_evidence_inserted BEFORE INSERT ON trade_evidence
FOR EACH ROW
BEGIN
    CALL tl_guard(0);
    IF NOT tl_slot_copies() THEN
        SET NEW.account = USER(), NEW.filed_at = tl_moment();
    END IF;
END;

-- What a piece of evidence does to the trade, in the same statement, also for SQL typed by hand.
-- Success of this epoch is noted on the row.  The conflict is set by success that contradicts the
-- row, and by a payment that is pending although it failed.  Token and fence stay, so the holder is
-- not disturbed.  A waiting or parked lane of this epoch becomes due at once; one that is held, when
-- it is opened, since the revision tells of whatever was filed meanwhile (open_lane.sql).
--
-- Success of a trade whose row was lost in a restore makes the row, as a success, so that nobody is
-- granted it again.  What else was lost (contents, business rows) is not known here.
CREATE OR REPLACE TRIGGER trade_evidence_filed AFTER INSERT ON trade_evidence
FOR EACH ROW
whole:
BEGIN
    DECLARE now_status CHAR(1) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE own, success, contradicts, doubted TINYINT DEFAULT 0;
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
        SET success = NEW.outcome = 'SUCCEEDED',
            contradicts = (success AND (NOT own OR now_status = 'F'))
                OR (NEW.outcome = 'PENDING' AND NEW.final AND now_status = 'F'),
            doubted = own AND now_status = 'P';
        IF contradicts OR doubted THEN
            UPDATE trade_lock FORCE INDEX (PRIMARY)
            SET step = 'evidence', rev = rev + 1,
                thread_no = COALESCE(NEW.thread_no, thread_no),
                success_epoch = IF(success AND own, epoch, success_epoch),
                conflict = conflict OR contradicts,
                seen_by_channel = seen_by_channel OR (doubted
                    AND NEW.outcome IN ('SUCCEEDED', 'ACCEPTED', 'PENDING')),
                actor = NULL, updated_at = UTC_TIMESTAMP(6)
            WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no
                AND op_code = NEW.op_code;
        END IF;
        IF doubted THEN
            UPDATE trade_lock FORCE INDEX (PRIMARY)
            SET step = 'evidence', rev = rev + 1, fence = fence + 1,
                thread_no = COALESCE(NEW.thread_no, thread_no),
                next_run_at = UTC_TIMESTAMP(6), actor = NULL, updated_at = UTC_TIMESTAMP(6)
            WHERE cust_no = NEW.cust_no AND serial_no = NEW.serial_no
                AND op_code = CONCAT(NEW.op_code, _ascii '_RETRY') AND status = 'F'
                AND epoch = NEW.epoch AND (next_run_at IS NOT NULL OR parked IS NOT NULL);
        END IF;
    ELSEIF NEW.outcome = 'SUCCEEDED' AND tl_restored() THEN
        INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no,
            token, fence, rev, epoch, sends, success_epoch, channel_key, channel_ref, remark,
            created_at, updated_at)
        VALUES (NEW.cust_no, NEW.serial_no, NEW.op_code, 'S', 'Y', 'filed',
            COALESCE(NEW.thread_no, UUID()), RANDOM_BYTES(16),
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), NEW.epoch, 1,
            NEW.epoch, NEW.channel_key, NEW.channel_ref,
            'lost in a restore and filed since; its business rows were not booked',
            UTC_TIMESTAMP(6), UTC_TIMESTAMP(6));
    END IF;
END;
