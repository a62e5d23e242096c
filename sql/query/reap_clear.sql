-- The same as reap_overdue, and the proof that there is no other: each row of the stretch is
-- locked for the moment, so that one which an open transaction has written, and nobody sees
-- yet, answers 1205 instead of being passed over.  Where this finds none the stretch is done
-- with, and the low-water mark may move behind it.
SELECT cust_no, serial_no, fence, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at)
FROM trade_lock FORCE INDEX (due)
WHERE op_code = ? AND next_run_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL ? MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL ? MICROSECOND
    AND status = 'P' AND lane = 'S'
ORDER BY op_code, next_run_at
LIMIT 256
LOCK IN SHARE MODE
