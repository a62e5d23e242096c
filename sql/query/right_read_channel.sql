-- Whether this account may see which channels are paused or limited, the breakers, and who has
-- registered which; no row can match.
SELECT 1 FROM tl_session_channel, trade_channel, trade_channel_limit, trade_channel_permit, trade_channel_breaker
WHERE FALSE
