-- An operator limits a channel, or lifts the limit; the procedure checks what is there
-- (sql/object/channel.sql).
CALL tl_channel_limit(:channel, :op_code, :sends, :per_second, :log_no, :actor, :reason)
