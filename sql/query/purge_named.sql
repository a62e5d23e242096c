-- Names the trades of a page that may go, and removes nothing; the procedure decides which, and
-- keeps nothing locked.  What is read of them afterwards counts only if purge_archived.sql finds
-- them as they were named.
CALL tl_purge_named(:older_ms, :most, :cust_no, :serial_no, :op_code, @tl_purged, @tl_named)
