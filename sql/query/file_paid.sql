-- Files the success of a trade whose row was lost in a restore; see the procedure.
CALL tl_file_paid(:cust_no, :serial_no, :op_code, :epoch, :channel_key, :channel_ref, :thread_no)
