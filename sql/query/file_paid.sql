-- Success of a trade whose row was lost in a restore; see the procedure.
CALL tl_file_paid(?, ?, ?, ?, ?, ?, ?)
