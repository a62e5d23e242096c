-- After a beat: removes the receipts of what this session was granted; see the procedure.
CALL tl_receipts_close(:session_id)
