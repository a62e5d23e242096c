-- A restored or promoted database: remembered until two operators accept it.
--
-- tl_schema gets the identity without the port (which says nothing about the data), how
-- many restores were declared or found, which of them was the last one accepted, and when.
-- While the numbers differ one is open.  The columns server_identity and restored_at are
-- kept in step for programs that are older than this migration.
ALTER TABLE tl_schema
    ADD COLUMN IF NOT EXISTS identity VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    ADD COLUMN IF NOT EXISTS restore_no BIGINT UNSIGNED NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS accepted_no BIGINT UNSIGNED NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS accepted_at DATETIME(6) NULL;
-- 'host port id directory' without its second word.
UPDATE tl_schema
SET identity = CONCAT(SUBSTRING_INDEX(server_identity, ' ', 1),
    SUBSTRING(server_identity, LOCATE(' ', server_identity,
        LOCATE(' ', server_identity) + 1)))
WHERE identity IS NULL AND server_identity IS NOT NULL;

-- Each restore: how it came to be known, who proposed to accept it and who confirmed that.
-- A row is appended; nobody of ours may change one, nor write `account`, the server's word
-- for who it was (see trade_resolution).
--   step      declared by an operator, or found by a program; proposed; confirmed
--   was       the server that had been accepted;  identity  the one that it was written on
--   doubtful  of a confirmation: how many trades it made ones in doubt
CREATE TABLE IF NOT EXISTS tl_restore (
    restore_no BIGINT UNSIGNED NOT NULL DEFAULT 0,
    step VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    was VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    identity VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    doubtful BIGINT UNSIGNED NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
        DEFAULT (CURRENT_USER()),
    decided_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    PRIMARY KEY (restore_no, step),
    CONSTRAINT step_of_a_restore CHECK (step IN ('declared', 'found', 'proposed', 'confirmed'))
) ENGINE = InnoDB;

-- What an older program declared stays declared.  Without the help of triggers, which may not be
-- there yet, and not against them: they write what the first statement reads.
SET @tl_declared = (SELECT restore_no + 1
    FROM tl_schema WHERE one = 1 AND restored_at IS NOT NULL AND restore_no = accepted_no);
INSERT IGNORE INTO tl_restore (restore_no, step, reason, identity, account)
SELECT @tl_declared, 'declared', 'before restores had a record',
    CONCAT_WS(' ', @@hostname, @@server_id, @@datadir), USER()
FROM DUAL WHERE @tl_declared IS NOT NULL;
UPDATE tl_schema SET restore_no = @tl_declared
WHERE one = 1 AND restore_no = @tl_declared - 1;
