-- Whether this account may see which channels are paused; no row can match.
SELECT 1 FROM trade_channel WHERE FALSE
