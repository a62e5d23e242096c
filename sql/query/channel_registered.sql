-- All channels that were registered for an operation: the contract, and how many sessions that live
-- have registered it.
SELECT c.channel, c.op_code, c.contract, COUNT(s.session_id)
FROM trade_channel c FORCE INDEX (PRIMARY)
LEFT JOIN tl_session_channel r FORCE INDEX (PRIMARY)
    ON r.channel = c.channel AND r.op_code = c.op_code
LEFT JOIN tl_session s FORCE INDEX (PRIMARY)
    ON s.session_id = r.session_id AND s.ended_at IS NULL
WHERE c.contract IS NOT NULL
GROUP BY c.channel, c.op_code
ORDER BY c.channel, c.op_code
