-- Whether this account may see which channels are paused or limited; no row can match.
SELECT 1 FROM trade_channel, trade_channel_limit, trade_channel_permit WHERE FALSE
