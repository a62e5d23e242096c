-- Invented: what a later version may bring.  A column of the busiest tables, which services use
-- meanwhile, and an index.
ALTER TABLE trade_lock
    ADD COLUMN IF NOT EXISTS note VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL;
ALTER TABLE trade_lock ADD KEY IF NOT EXISTS note (note, serial_no);
ALTER TABLE tl_session ADD COLUMN IF NOT EXISTS note INT UNSIGNED NOT NULL DEFAULT 0;
