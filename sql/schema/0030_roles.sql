-- What accounts of one role cannot forge.
ALTER TABLE tl_session
    -- who began it; the server's word
    ADD COLUMN IF NOT EXISTS begun_by VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
        NOT NULL DEFAULT '',
    -- the moment of the drain that it obeys, in microseconds
    ADD COLUMN IF NOT EXISTS obeys_us BIGINT NULL;

-- Nothing younger is purged, whoever asks.  `tradelock migrate` raises it to the setting.
ALTER TABLE tl_schema
    ADD COLUMN IF NOT EXISTS retention_ms BIGINT UNSIGNED NOT NULL DEFAULT 7776000000
        CHECK (retention_ms >= 86400000);
