-- How many permits of limited channels each session has.  All are walked: a process has one row for
-- each limit at most.
SELECT session_id, SUM(permits)
FROM trade_channel_permit FORCE INDEX (PRIMARY)
GROUP BY session_id
