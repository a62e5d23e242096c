-- A page of one operation's rows that have a holder and no next moment: locks without a
-- retry lane, and retry rows of compensating attempts that run now.
SELECT cust_no, serial_no, op_code, lane, status, conflict, parked IS NOT NULL AS is_parked,
    TIMESTAMPDIFF(MICROSECOND, updated_at, UTC_TIMESTAMP(6)) DIV 1000 AS age_ms, session_id
FROM trade_lock FORCE INDEX (due)
WHERE op_code = ? AND next_run_at IS NULL AND session_id >= ?
ORDER BY session_id, cust_no, serial_no
LIMIT ? OFFSET ?
