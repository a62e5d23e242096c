-- The rest of the transaction that confirms; the procedure looks whether two did.  It waits for each
-- row: without, in a house under load somebody would always be at one of so many.  Whoever holds one
-- and wants the schema's row is a deadlock, which the server ends, and this is done again.
SET STATEMENT innodb_lock_wait_timeout = 5 FOR
CALL tl_restore_accept(:max_hold_ms, :thread_no)
