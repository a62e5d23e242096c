-- A program has found that this database is not the accepted one; see the procedure.
CALL tl_restore_found(:accepted, :why)
