-- A first ask that business rows ride along with: its transaction begins with it and stays
-- open for the callback, behind a savepoint whose release shows whether the callback ended
-- the transaction.  Only this statement does not wait for a row lock; the callback's may.
-- An error commits nothing, and may leave the transaction open: the library rolls back.
BEGIN NOT ATOMIC
    START TRANSACTION;
    SET STATEMENT innodb_lock_wait_timeout=0 FOR
/*include ask_insert*/;
    SAVEPOINT tl_callback;
END
