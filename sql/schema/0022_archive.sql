-- Archives of purges (core/admin/archive.h): whose they are, and which sets they have.
--
-- The installation's own name, made once.  Whatever is made of this database is the same
-- installation: a promoted replica, a node of a cluster, a copy that was moved.
ALTER TABLE tl_schema ADD COLUMN IF NOT EXISTS installation UUID NULL;
-- A variable's value is what replicas get, whatever the format of the binary log.
SET @tl_installation = UUID();
UPDATE tl_schema SET installation = @tl_installation WHERE one = 1 AND installation IS NULL;

-- A set that was complete and on the disk, before anything of it was removed.  Append only.  The
-- sum of a set's manifest stands for the whole chain of sets up to it, since each manifest has the
-- sum of the one before.
--   sha         SHA-256 of its manifest
--   before_sha  that of the set before; '-': it is the first of an archive
CREATE TABLE IF NOT EXISTS tl_archive_set (
    sha CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    before_sha CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    set_no INT UNSIGNED NOT NULL,
    trades BIGINT UNSIGNED NOT NULL,
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
        DEFAULT (CURRENT_USER()),
    noted_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    KEY followed (before_sha)
) ENGINE = InnoDB;
