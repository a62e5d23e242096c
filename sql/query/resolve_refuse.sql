-- A worker refuses to carry out what two operators decided about this revision, since the channel
-- says that the payment lives.  This ends the decision.
CALL tl_resolution_refused(:cust_no, :serial_no, :op_code, :rev, :reason, :thread_no, :log_no)
