-- How much operators let through a channel, for one operation or, with op_code '', for all of its
-- operations together.  Every process reads the rows after each of its heartbeats.
--   sends        at most so many at a time; NULL: any number
--   per_second   at most so many a second; NULL: any number
--   next_at      from when on the next send may begin; the sends before it are given away
--   decided_at, reason, actor, account   of the last decision.  The account is the server's word
--                                        for who it was
CREATE TABLE IF NOT EXISTS trade_channel_limit (
    channel VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    sends INT UNSIGNED NULL,
    per_second INT UNSIGNED NULL,
    next_at DATETIME(6) NULL,
    decided_at DATETIME(6) NOT NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (channel, op_code),
    CONSTRAINT a_limit_lets_something_through CHECK (COALESCE(sends, 1) BETWEEN 1 AND 1000000
        AND COALESCE(per_second, 1) BETWEEN 1 AND 100000)
) ENGINE = InnoDB;
-- How many of the sends at a time a session has for itself.
--   permits   so many at most are under way
--   wanted    so many it could use now
--   hold_ms   none of its sends is under way for longer
CREATE TABLE IF NOT EXISTS trade_channel_permit (
    channel VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    session_id UUID NOT NULL,
    permits INT UNSIGNED NOT NULL,
    wanted INT UNSIGNED NOT NULL,
    hold_ms BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (channel, op_code, session_id)
) ENGINE = InnoDB;
