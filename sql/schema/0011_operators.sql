-- What operators may do to trades, in the database itself: no account of theirs writes
-- trade_lock any more.  A decision is carried out by the trigger on its second half, evidence
-- has its effect by the trigger on its row, a retry is a procedure; all with the rights of the
-- account that ran the migration.  USER() in them is who is connected.
--
-- A decision has a third part when a worker did not carry it out, since the channel said that
-- the payment lives: then it is over, and nobody ends the trade by it.  `although_pending` is
-- said by whoever confirms: it is to be booked although the channel calls it pending.
ALTER TABLE trade_resolution
    ADD COLUMN IF NOT EXISTS although_pending TINYINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS log_no UUID NULL,
    -- 1 on the third part, which a procedure writes; no role may write this column
    ADD COLUMN IF NOT EXISTS worker TINYINT NOT NULL DEFAULT 0,
    DROP CONSTRAINT IF EXISTS part_is_1_or_2,
    ADD CONSTRAINT IF NOT EXISTS part_is_1_2_or_3 CHECK (part IN (1, 2, 3));

-- What an audit found and two accounts have dealt with, each with a reason: a row for who
-- proposes to close it, a row for who confirms.  It is bound to the finding itself, the
-- SHA-256 of rule, trade, revision and sentence: another revision or other facts are another
-- finding, which is open.  Append only; who and when are the server's to say.
CREATE TABLE IF NOT EXISTS audit_closing (
    finding BINARY(32) NOT NULL,
    part TINYINT UNSIGNED NOT NULL,
    rule VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    -- of the row or the step; 0: there is none
    rev BIGINT UNSIGNED NOT NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    thread_no UUID NOT NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
        DEFAULT (CURRENT_USER()),
    closed_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    PRIMARY KEY (finding, part),
    CONSTRAINT closing_is_1_or_2 CHECK (part IN (1, 2))
) ENGINE = InnoDB;
