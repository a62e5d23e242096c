-- A program found that this database is not the one that was accepted; see the procedure.
CALL tl_restore_found(:accepted, :why)
