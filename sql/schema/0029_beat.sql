-- The last beat of each session, once more (object/position.sql says why).
CREATE TABLE IF NOT EXISTS tl_beat (
    session_id UUID NOT NULL,
    beat BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (session_id, beat)
) ENGINE = InnoDB;
INSERT IGNORE INTO tl_beat (session_id, beat) SELECT session_id, beat FROM tl_session;
