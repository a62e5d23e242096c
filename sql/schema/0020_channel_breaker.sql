-- The circuit breakers of channels, for one operation or, with op_code '', for all of its operations
-- together.  Every process reads the rows after each of its heartbeats.
--   unknowns      opens after so many sends in a row whose outcome is unknown; NULL: no breaker
--   share         opens also if so many per cent of a window's sends are unknown, and as many as
--                 unknowns; NULL: no such share
--   window_s      how long a window is
--   probe_s       while it is open, how long after one probe another one begins
--   era           another one with each decision and each opening: what was counted before is void
--   opened        how often it has opened
--   opened_at     since when it is open; NULL: closed
--   in_a_row      so many unknown outcomes were told in a row
--   window_at, window_sends, window_unknowns   since when the window is, and what was told in it;
--                                              while it is open, when the last probe began, and 1
--                                              if that goes on
--   probe_no      the number of the last probe
--   next_at       no probe begins before; the one under way is over by then
--   hold_ms       how long the last probe may be under way
--   decided_at, reason, actor, account   of the last decision.  The account is the server's word
--                                        for who it was
CREATE TABLE IF NOT EXISTS trade_channel_breaker (
    channel VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    unknowns INT UNSIGNED NULL,
    share INT UNSIGNED NULL,
    window_s INT UNSIGNED NULL,
    probe_s INT UNSIGNED NOT NULL DEFAULT 10,
    era BIGINT UNSIGNED NOT NULL DEFAULT 0,
    opened BIGINT UNSIGNED NOT NULL DEFAULT 0,
    opened_at DATETIME(6) NULL,
    in_a_row BIGINT UNSIGNED NOT NULL DEFAULT 0,
    window_at DATETIME(6) NULL,
    window_sends BIGINT UNSIGNED NOT NULL DEFAULT 0,
    window_unknowns BIGINT UNSIGNED NOT NULL DEFAULT 0,
    probe_no BIGINT UNSIGNED NOT NULL DEFAULT 0,
    next_at DATETIME(6) NULL,
    hold_ms BIGINT UNSIGNED NOT NULL DEFAULT 0,
    decided_at DATETIME(6) NOT NULL,
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (channel, op_code),
    CONSTRAINT a_breaker_can_open_and_close CHECK (COALESCE(unknowns, 1) BETWEEN 1 AND 1000000
        AND COALESCE(share, 1) BETWEEN 1 AND 100 AND COALESCE(window_s, 1) BETWEEN 1 AND 86400
        AND (share IS NULL) = (window_s IS NULL) AND probe_s BETWEEN 1 AND 86400)
) ENGINE = InnoDB;
