-- A session declares what its program promises of a channel; the procedure commits by itself
-- (sql/object/contract.sql).
CALL tl_channel_declare(:channel, :op_code, :session_id, :was, :contract, :more, @tl_contract)
