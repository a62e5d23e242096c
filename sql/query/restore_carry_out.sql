-- The rest of the transaction that confirms; the procedure looks whether two did.
CALL tl_restore_accept(:max_hold_ms, :thread_no)
