-- An operator pauses a channel, or has it go on; the procedure checks what is there
-- (sql/object/channel.sql).
CALL tl_channel_decide(:channel, :op_code, :paused, :log_no, :actor, :reason)
