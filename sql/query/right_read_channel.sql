-- Whether this account may see which channels are paused or limited, and the breakers; no row can
-- match.
SELECT 1 FROM trade_channel, trade_channel_limit, trade_channel_permit, trade_channel_breaker
WHERE FALSE
