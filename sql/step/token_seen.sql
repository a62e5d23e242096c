-- Whether a step with this token was ever committed.
SELECT tl_token_seen(:cust_no, :serial_no, :op_code, :token)
