-- A fleet: several databases beside one another, its shards, each with whole customers.  Customers
-- belong to slots (tl_customer_slot), slots to shards.
--
-- Which shard of which fleet this database is; NULL: of none.  `tradelock fleet join` writes it
-- last, when the triggers are there that keep customers apart (sql/fleet).
ALTER TABLE tl_schema
    ADD COLUMN IF NOT EXISTS fleet VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
    ADD COLUMN IF NOT EXISTS shard VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL;

-- The slots that this database has or had; no row: it never had that slot, or a move to here was
-- given up.
--   state      owned; leaving, to `other`: nothing begins, and what was begun ends; gone, to
--              `other`; arriving, from `other`
--   version    rises when the slot is handed over, and is the same at both ends then: whoever owns a
--              slot under the highest version has it
--   sealed     of a leaving slot: nothing is in process, and nothing of it changes any more, so that
--              it can be copied
--   tables     business tables, with commas between.  Where the slot is owned: those that go along
--              whenever it moves.  Gone or arriving: those that may have copies of its rows here
--   taking     of a leaving slot: those that go along with this move.  Whoever goes on with it takes
--              the same ones
--   token      of whoever moves it now: another move begins with another one, and the former does
--              nothing more.  Of a gone slot: somebody removes its rows here, or did, or gave up
--              a move that brought them in part, so that it is no source of them any more.  No
--              role may read it (sql/object/fleet.sql)
CREATE TABLE IF NOT EXISTS tl_slot (
    slot SMALLINT UNSIGNED NOT NULL PRIMARY KEY,
    state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    version BIGINT UNSIGNED NOT NULL DEFAULT 1,
    other VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
    sealed TINYINT NOT NULL DEFAULT 0,
    tables VARCHAR(4200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    taking VARCHAR(4200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    token BINARY(16) NULL,
    changed_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    account VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT (USER()),
    reason VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    CONSTRAINT slot_is_known CHECK (slot < 1024),
    CONSTRAINT state_of_a_slot CHECK (state IN ('owned', 'leaving', 'gone', 'arriving')),
    CONSTRAINT only_leaving_is_sealed CHECK (sealed = 0 OR state = 'leaving'),
    CONSTRAINT only_leaving_takes CHECK (taking IS NULL OR state = 'leaving')
) ENGINE = InnoDB;

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
