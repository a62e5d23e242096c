-- What is promised of a channel for an operation (tl_promises of layer.h, as text): by all sessions
-- that live and have registered it, and by those that sent what is in process still.
ALTER TABLE trade_channel
    ADD COLUMN IF NOT EXISTS contract VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL;

-- Which sessions have registered it.  Those that ended count for nothing.
CREATE TABLE IF NOT EXISTS tl_session_channel (
    channel VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    session_id UUID NOT NULL,
    PRIMARY KEY (channel, op_code, session_id)
) ENGINE = InnoDB;

-- The site of all channel keys; NULL: no session has begun yet.
ALTER TABLE tl_schema
    ADD COLUMN IF NOT EXISTS site VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL;

-- Which decisions about channels its program obeys; '': it is older than all of them.
ALTER TABLE tl_session
    ADD COLUMN IF NOT EXISTS obeys VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
        DEFAULT '';
