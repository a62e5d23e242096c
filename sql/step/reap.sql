-- A janitor opens a P row whose holder is not alive: its max_hold is over, or its session is gone
-- or ended.  Death is final and was committed before, so the session is read without a lock; the
-- fence proves that the row is the one that was seen.
form reap: one row, alone
form reap_now: one row, alone; then open_lane

UPDATE s
SET s.step = 'reap',
    s.session_id = NULL,
    s.max_hold_until = NULL,
    s.next_run_at = NULL,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.actor = :actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P'
    AND s.fence = :held_fence                                   -- rule fence
    AND s.lane = 'S' AND s.repeatable = 0
    AND (s.max_hold_until IS NULL OR s.max_hold_until <= UTC_TIMESTAMP(6)
        OR s.session_id IS NULL
        OR NOT EXISTS (SELECT 1 FROM tl_session x
            WHERE x.session_id = s.session_id AND x.ended_at IS NULL))
