-- Which channels and operations are limited; op_code '' is a limit of all operations together.
SELECT channel, op_code, sends, per_second
FROM trade_channel_limit FORCE INDEX (PRIMARY)
WHERE sends IS NOT NULL OR per_second IS NOT NULL
ORDER BY channel, op_code
