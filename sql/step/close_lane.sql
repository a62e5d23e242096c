-- Closes a retry row that is still open although its sync row is finished or of another epoch.
-- Whoever meets such a row closes it.
form close_lane: both rows, alone

UPDATE s
SET r.status = IF(s.status = 'Y' AND r.epoch = s.epoch, 'Y', 'F'),
    r.step = 'close',
    r.thread_no = :thread_no,
    r.token = :token,
    r.session_id = NULL,
    r.next_run_at = NULL,
    r.parked = NULL,
    r.claims = 0,
    r.fence = r.fence + 1,
    r.rev = r.rev + 1,
    r.actor = NULL,
    r.updated_at = UTC_TIMESTAMP(6)
WHERE (s.status <> 'P' OR r.epoch <> s.epoch)
    AND (r.next_run_at IS NOT NULL OR r.parked IS NOT NULL OR r.status = 'P')
