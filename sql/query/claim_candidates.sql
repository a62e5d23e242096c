-- Due work of one operation, oldest first, in the order of the index.  Rows that another worker is
-- claiming are skipped.  The locks last until the claims are committed.  Suspects, during whose
-- last hold the holder died, are claimed apart (claim_suspects.sql).
SELECT cust_no, serial_no
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :retry_op AND next_run_at <= UTC_TIMESTAMP(6) AND claims = 0
ORDER BY op_code, next_run_at
LIMIT :most
FOR UPDATE SKIP LOCKED
