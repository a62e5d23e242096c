-- Which of these steps were committed, whatever has become of their rows since: for a statement
-- that carried out many and changed fewer rows than all of them have.
form tokens_seen: one row, many

SELECT :token
FROM s
WHERE s.token = :token OR tl_token_seen(:cust_no, :serial_no, :op_code, :token)
