-- In the caller's transaction: the row is locked until that transaction ends.  It is there, so that
-- no gap is locked.  WAIT n or NOWAIT is put after it.
SELECT resource FROM row_lock WHERE resource = :resource FOR UPDATE
