-- Claims the retry-compensation lock: one compensating attempt gets in.  One statement changes both
-- rows, sync row first.  A waiting retry row of the same epoch means that the sync row has no
-- holder.
-- claim_as 0: a claim by key, of a row that is due and not parked; 2: a worker's claim, which may
-- also take a parked row that became due; 1: an operator's override, bound to the fence that was
-- seen.  The claim's log UUID is the thread's, else that of the trade's first ask, else that of its
-- last step, else a new one.
-- Every statement for many steps forces the key: on a table that is small, or seems so, the server
-- would read all of it, and lock or meet rows of other trades.
form claim: both rows, alone
form claim_many: both rows, many

UPDATE s
SET s.step = 'claim',
    s.thread_no = :thread_no,
    s.log_no = COALESCE(:log_no, s.first_log_no, s.log_no, :new_log_no),
    s.session_id = :session_id,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.max_hold_until = UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    s.next_run_at = GREATEST(UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
        SYSDATE(6) + INTERVAL 5 SECOND),
    s.actor = NULL,
    s.updated_at = UTC_TIMESTAMP(6),
    r.status = 'P',
    r.step = 'claim',
    r.thread_no = :thread_no,
    r.log_no = COALESCE(:log_no, s.first_log_no, s.log_no, :new_log_no),
    r.session_id = :session_id,
    r.token = :token,
    r.fence = r.fence + 1,
    r.rev = r.rev + 1,
    r.attempts = r.attempts + 1,
    r.claims = r.claims + 1,
    r.next_run_at = NULL,
    r.actor = NULL,
    r.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P' AND s.session_id IS NULL AND r.status = 'F' AND r.epoch = s.epoch
    AND (:claim_as = 1 OR (r.next_run_at <= UTC_TIMESTAMP(6)
        AND (r.parked IS NULL OR :claim_as = 2)))
    AND (:claim_as <> 1 OR s.fence = :override_fence)           -- rule fence
