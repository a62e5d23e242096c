-- A reclaim that business rows ride along with, as ask_with.
BEGIN NOT ATOMIC
    START TRANSACTION;
    SET STATEMENT innodb_lock_wait_timeout=0 FOR
/*include ask_reclaim*/;
    SAVEPOINT tl_callback;
END
