-- A process tells what it counted of a channel with a breaker, or what its probe came to; the
-- procedure commits by itself (sql/object/channel.sql).
CALL tl_channel_told(:channel, :op_code, :era, :probe, :answered, :tail, :unknowns, :sends,
    @tl_breaker)
