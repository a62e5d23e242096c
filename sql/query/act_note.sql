-- Notes an act within the transaction that does it; cust_no NULL: it is about no trade.
CALL tl_act_note(:what, :said, :reason, :actor, :log_no, :cust_no, :serial_no, :op_code, :fence,
    :result)
