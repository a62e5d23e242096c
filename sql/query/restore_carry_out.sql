-- The rest of the transaction that confirms a restore; the procedure checks that two operators did.
-- It waits for each row, since under load some row is always locked.  A transaction that has such a
-- row and wants the schema's row is a deadlock; the server ends one of the two, and this is run
-- again.
SET STATEMENT innodb_lock_wait_timeout = 5 FOR
CALL tl_restore_accept(:max_hold_ms, :thread_no)
