-- claim.sql for many keys, in their order: by key, or a worker's (claim_as 2), never an
-- override.  The first SELECT gives the values their names and types; it reads nothing.
-- The key is forced here and in the others of this kind: on a table that is small, or seems
-- so, the server would read all of it, and lock, or meet, rows that are others' business.
UPDATE (SELECT cust_no, serial_no, op_code, op_code AS retry_op, thread_no, log_no,
        log_no AS new_log_no, session_id, token, rev AS max_hold_ms, lane AS claim_as
    FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
STRAIGHT_JOIN trade_lock r FORCE INDEX (PRIMARY) ON r.cust_no = s.cust_no
    AND r.serial_no = s.serial_no AND r.op_code = j.retry_op
SET s.step = 'claim', s.thread_no = j.thread_no,
    s.log_no = COALESCE(j.log_no, s.first_log_no, s.log_no, j.new_log_no),
    s.session_id = j.session_id, s.token = j.token, s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.max_hold_until = UTC_TIMESTAMP(6) + INTERVAL j.max_hold_ms * 1000 MICROSECOND,
    s.next_run_at = GREATEST(
        UTC_TIMESTAMP(6) + INTERVAL j.max_hold_ms * 1000 MICROSECOND,
        SYSDATE(6) + INTERVAL 5 SECOND),
    s.actor = NULL, s.updated_at = UTC_TIMESTAMP(6),
    r.status = 'P', r.step = 'claim', r.thread_no = j.thread_no,
    r.log_no = COALESCE(j.log_no, s.first_log_no, s.log_no, j.new_log_no),
    r.session_id = j.session_id, r.token = j.token, r.fence = r.fence + 1,
    r.rev = r.rev + 1, r.attempts = r.attempts + 1, r.claims = r.claims + 1,
    r.next_run_at = NULL, r.actor = NULL, r.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P' AND s.session_id IS NULL AND r.status = 'F' AND r.epoch = s.epoch
    AND r.next_run_at <= UTC_TIMESTAMP(6) AND (r.parked IS NULL OR j.claim_as = '2')
