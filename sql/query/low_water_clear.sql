-- Proves that no row of a stretch is hidden.  It locks each index entry of the stretch for a
-- moment. So a row that an open transaction has written, and that nobody sees yet, answers 1205
-- instead of being missed.  The rows themselves are not locked, so endings, and asks for a finished
-- trade, do not notice.  A step that takes its own entry out of the stretch does notice (a reclaim,
-- an opening, a purge): it is told to try again.
SELECT COUNT(*)
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
    + INTERVAL :from_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
LOCK IN SHARE MODE
