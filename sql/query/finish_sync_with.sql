-- The ending that business rows ride along with: the first statement of their transaction,
-- which stays open as that of ask_with.  It waits for whoever has the row, within the
-- connection's time.
BEGIN NOT ATOMIC
    START TRANSACTION;
/*include finish_sync*/;
    SAVEPOINT tl_callback;
END
