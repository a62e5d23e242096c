-- A commit that a session was told of, and that the promoted server lacks.
CALL tl_attest_missing(:number, :session_id, :item, :step, :cust_no, :serial_no, :op_code, :token)
