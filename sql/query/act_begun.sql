-- The number of the act that this connection began last.
SELECT @tl_act
