-- An observer opens a P row whose holder is not alive: max_hold is over, or the session is gone or
-- ended.  Death is final and was committed before, so reading the session without a lock is enough;
-- the fence proves that the row is the one that was seen.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET step = 'reap', session_id = NULL, max_hold_until = NULL, next_run_at = NULL,
    token = ?, fence = fence + 1, rev = rev + 1, actor = ?,
    updated_at = UTC_TIMESTAMP(6)
WHERE cust_no = ? AND serial_no = ? AND op_code = ? AND status = 'P' AND fence = ?
    AND lane = 'S' AND repeatable = 0
    AND (max_hold_until IS NULL OR max_hold_until <= UTC_TIMESTAMP(6)
        OR session_id IS NULL
        OR NOT EXISTS (SELECT 1 FROM tl_session x
            WHERE x.session_id = trade_lock.session_id AND x.ended_at IS NULL))
