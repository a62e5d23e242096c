-- What the last page of settling came to, on this connection.
SELECT @tl_clock_settled
