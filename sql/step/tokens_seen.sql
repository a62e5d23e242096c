-- Which of these steps were committed, whatever became of their rows since.  It is for a statement
-- of many steps that changed fewer rows than all of the steps would.
form tokens_seen: one row, many

SELECT :token
FROM s
WHERE s.token = :token OR tl_token_seen(:cust_no, :serial_no, :op_code, :token)
