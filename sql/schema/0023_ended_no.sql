-- Under which accepting a session was ended: the number of the last restore that was accepted on its
-- server then; by NULL, a program that is older than this.  Who was ended before another server was
-- accepted was told of nothing since (object/restore.sql).
ALTER TABLE tl_session
    ADD COLUMN IF NOT EXISTS ended_no BIGINT UNSIGNED NULL;
