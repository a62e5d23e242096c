-- What became of one operation's trades in the last minutes, by channel and minute: how many
-- succeeded, were declined by the channel and failed with another proof; and when the channel's
-- word last ended one, in microseconds.  What evidence told of the row's epoch or against its end,
-- what a service declared and what operators decided is not the channel's answer.  A trade ends
-- before its hold would have, and keeps the end of its hold (next_run_at).  So what ended in these
-- minutes stands behind their begin in the index.  If the limit cuts rows off, all that ended after
-- the earliest next_run_at that was read is counted.  Minutes are counted since 1970.
SELECT TIMESTAMPDIFF(MINUTE, '1970-01-01', UTC_TIMESTAMP()) AS this_minute,
    TIMESTAMPDIFF(MINUTE, '1970-01-01', updated_at) AS minute,
    COALESCE(channel, 'unknown') AS channel,
    SUM(is_trade AND status = 'Y') AS succeeded,
    SUM(is_trade AND status = 'F' AND proof = 'D') AS declined,
    SUM(is_trade AND status = 'F' AND proof <> 'D') AS failed,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MAX(IF(is_trade AND conflict = 0
        AND (status = 'Y' AND NOT success_epoch <=> epoch
            OR status = 'F' AND proof IN ('D', 'N', 'C')), updated_at, NULL))) AS answered_us,
    COUNT(*) AS looked_at,
    MIN(TIMESTAMPDIFF(MINUTE, '1970-01-01', next_run_at)) AS earliest
FROM (SELECT updated_at, status, proof, conflict, channel, epoch, success_epoch, next_run_at,
        lane = 'S' AND repeatable = 0 AS is_trade
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at >= UTC_TIMESTAMP(6) - INTERVAL :minutes MINUTE
    ORDER BY op_code DESC, next_run_at DESC, session_id DESC
    LIMIT :most) newest
GROUP BY minute, channel
