-- Records that a set is complete and on the disk.  Before anything of it is removed: so whatever a
-- promoted copy lacks of the end of the log, where trades are gone their set is on record.  A
-- second time it does nothing: a purge that was cut off says it again.
INSERT IGNORE INTO tl_archive_set (sha, before_sha, set_no, trades)
VALUES (:sha, :before_sha, :set_no, :trades)
