-- The proof that nothing of a stretch is hidden: each of its entries in the index is locked for a
-- moment, so that a row which an open transaction has written, and nobody sees yet, answers 1205
-- instead of being passed over.  The rows themselves are not: endings, and asks for a trade that is
-- finished, do not notice.  A step that takes its own entry out of the stretch does (a reclaim, an
-- opening, a purge): it is told to try again.
SELECT COUNT(*)
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at >= CAST('1970-01-01' AS DATETIME(6))
    + INTERVAL :from_us MICROSECOND
    AND next_run_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :to_us MICROSECOND
LOCK IN SHARE MODE
