-- What a piece of evidence says that was moved, and whether it contradicted the trade's row when it
-- was filed (sql/object/evidence.sql).
ALTER TABLE trade_evidence
    ADD COLUMN IF NOT EXISTS amount_minor BIGINT NULL,
    ADD COLUMN IF NOT EXISTS currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NULL,
    ADD COLUMN IF NOT EXISTS contradicts TINYINT NOT NULL DEFAULT 0;
