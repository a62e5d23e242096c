-- A process would probe an open breaker; the procedure commits by itself (sql/object/channel.sql).
CALL tl_channel_probe(:channel, :op_code, :probe, :hold_ms, :latest_us, @tl_breaker)
