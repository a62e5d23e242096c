-- Due work of one operation, oldest first, in the order of the index.  Rows that another worker is
-- claiming are skipped.  The locks last until the claims are committed.  Suspects, during whose
-- last hold the holder died, are claimed apart (claim_suspects.sql).
-- Under load the front of the index is full of entries of what was claimed lately, which the server
-- keeps until it purges them, and has to step over.  So a claim may begin at :from_us, microseconds
-- since 1970, where the one before it found the oldest; 0 is the beginning.
SELECT cust_no, serial_no, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at)
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :retry_op AND next_run_at >= '1970-01-01' + INTERVAL :from_us MICROSECOND
    AND next_run_at <= UTC_TIMESTAMP(6) AND claims = 0
ORDER BY op_code, next_run_at
LIMIT :most
FOR UPDATE SKIP LOCKED
