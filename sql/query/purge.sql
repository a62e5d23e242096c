-- Purges one page of trades, or only counts what would go; the procedure decides what may go and
-- commits by itself.
CALL tl_purge_trades(:only_counts, :older_ms, :most, :cust_no, :serial_no, :op_code, @tl_purged)
