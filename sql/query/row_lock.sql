-- In the caller's transaction: locks the row until that transaction ends.  The row was made before,
-- so no gap is locked.  WAIT n or NOWAIT is put after this statement.
SELECT resource FROM row_lock WHERE resource = :resource FOR UPDATE
