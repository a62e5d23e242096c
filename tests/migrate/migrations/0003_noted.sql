-- Invented: a table, its first row, and a change of rows that are there.
CREATE TABLE IF NOT EXISTS tl_noted (
    one TINYINT NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    notes BIGINT UNSIGNED NOT NULL DEFAULT 0
) ENGINE = InnoDB;
INSERT IGNORE INTO tl_noted (one) VALUES (1);
UPDATE tl_session SET note = 1 WHERE ended_at IS NULL AND note = 0;
