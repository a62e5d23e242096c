-- An operator gives a channel a breaker, or takes it away; the procedure checks what is there
-- (sql/object/channel.sql).
CALL tl_channel_breaker(:channel, :op_code, :unknowns, :share, :window_s, :probe_s, :log_no, :actor,
    :reason)
