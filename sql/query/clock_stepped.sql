-- A clock jump was seen: the procedure records it once for all who saw it.
CALL tl_clock_stepped(:known, :size_us, :before_us, :actor)
