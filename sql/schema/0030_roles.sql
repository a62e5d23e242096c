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

-- Terminals show it as it is.
ALTER TABLE trade_lock
    ADD CONSTRAINT IF NOT EXISTS currency_is_letters CHECK (
        SUBSTR(currency, 1, 1) BETWEEN _ascii 'A' AND _ascii 'Z'
        AND SUBSTR(currency, 2, 1) BETWEEN _ascii 'A' AND _ascii 'Z'
        AND SUBSTR(currency, 3, 1) BETWEEN _ascii 'A' AND _ascii 'Z');
