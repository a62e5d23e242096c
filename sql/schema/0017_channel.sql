-- What operators decided about channels, as it is now: one row for each channel and operation that
-- a workflow has registered, and one with op_code '' for a channel that was paused as a whole.
-- Every process reads the rows that are paused after each of its heartbeats.
--   decided_at, reason, actor, account   of the last decision; NULL: there was none.  The account
--                                        is the server's word for who it was
CREATE TABLE IF NOT EXISTS trade_channel (
    channel VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    paused TINYINT NOT NULL DEFAULT 0,
    decided_at DATETIME(6) NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    PRIMARY KEY (channel, op_code),
    KEY paused (paused),
    CONSTRAINT a_pause_has_a_reason CHECK (paused = 0 OR (decided_at IS NOT NULL
        AND reason IS NOT NULL AND actor IS NOT NULL AND account IS NOT NULL))
) ENGINE = InnoDB;
