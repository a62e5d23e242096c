-- How many trades of one operation succeeded in each of the last minutes.  A trade ends before its
-- hold would have, and keeps the end of its hold (next_run_at).  So what ended in these minutes
-- stands behind their begin in the index.  If the limit cuts rows off, all that ended after the
-- earliest next_run_at that was read is counted.  Minutes are counted since 1970.
SELECT TIMESTAMPDIFF(MINUTE, '1970-01-01', UTC_TIMESTAMP()) AS this_minute,
    TIMESTAMPDIFF(MINUTE, '1970-01-01', updated_at) AS minute,
    SUM(status = 'Y' AND lane = 'S' AND repeatable = 0) AS paid, COUNT(*) AS looked_at,
    MIN(TIMESTAMPDIFF(MINUTE, '1970-01-01', next_run_at)) AS earliest
FROM (SELECT updated_at, status, lane, repeatable, next_run_at
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at >= UTC_TIMESTAMP(6) - INTERVAL :minutes MINUTE
    ORDER BY op_code DESC, next_run_at DESC, session_id DESC
    LIMIT :most) newest
GROUP BY minute
