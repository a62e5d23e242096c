-- The result of the last page that this connection adjusted.
SELECT @tl_clock_settled
