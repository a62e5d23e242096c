-- A process takes its share of a limited channel; the procedure commits by itself
-- (sql/object/channel.sql).
CALL tl_channel_share(:channel, :op_code, :session_id, :used, :wanted, :hold_ms, :claims, :latest_us,
    @tl_share)
