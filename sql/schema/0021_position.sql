-- A promoted server that is accepted by itself, since every process found there all that it had
-- been told was committed (object/position.sql).
--
-- Where a session was ended; by NULL, a program that is older than this; on '', one that knew of no
-- commit that the server could lack.  One that was ended on the promoted server itself has to attest
-- there all the same, unless another one was accepted since (0023_ended_no.sql).
ALTER TABLE tl_session
    ADD COLUMN IF NOT EXISTS ended_on VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL;

-- promoted: offered as the next writer; fenced: the one before is off for certain; proved: accepted
-- by itself.
ALTER TABLE tl_restore
    DROP CONSTRAINT IF EXISTS step_of_a_restore,
    DROP CONSTRAINT IF EXISTS known_step_of_a_restore;
ALTER TABLE tl_restore
    ADD CONSTRAINT known_step_of_a_restore CHECK (step IN ('declared', 'found', 'promoted',
        'fenced', 'proposed', 'confirmed', 'proved'));

-- The sessions that have to say whether the promoted server has all that they know, and what they
-- said.
--   attested_at  NULL: not yet
--   missing      how many of the last commits that it was told of are not there
--   kept         whether the server that it came from answered a commit only when a replica had it;
--                NULL: it came from none
CREATE TABLE IF NOT EXISTS tl_attestation (
    restore_no BIGINT UNSIGNED NOT NULL,
    session_id UUID NOT NULL,
    attested_at DATETIME(6) NULL,
    missing INT UNSIGNED NOT NULL DEFAULT 0,
    kept TINYINT NULL,
    PRIMARY KEY (restore_no, session_id)
) ENGINE = InnoDB;

-- What is missing: the step's name and token, and of which trade, resource or session (then in
-- serial_no); '' where the process cannot say.
CREATE TABLE IF NOT EXISTS tl_attestation_missing (
    restore_no BIGINT UNSIGNED NOT NULL,
    session_id UUID NOT NULL,
    item INT UNSIGNED NOT NULL,
    step VARCHAR(31) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    serial_no VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
    token BINARY(16) NULL,
    PRIMARY KEY (restore_no, session_id, item)
) ENGINE = InnoDB;
