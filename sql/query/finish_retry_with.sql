-- The ending of a retry lane's holder with business rows, as finish_sync_with.
BEGIN NOT ATOMIC
    START TRANSACTION;
/*include finish_retry*/;
    SAVEPOINT tl_callback;
END
