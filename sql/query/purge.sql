-- Purges one page of trades; the procedure decides what may go and commits by itself.
CALL tl_purge(:older_ms, :most, :cust_no, :serial_no, :op_code, @tl_purged)
