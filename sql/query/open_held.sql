-- The holder gives the sync row back without a final answer: it loses its holder and stays P.  A
-- send that provably did nothing is taken off again, and with it what it added to send_until, if
-- the row counts no send that the holder does not know of. A mutex has no retry row by which it
-- could be found among the finished rows; it stands at a moment that is never due.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET step = ?, session_id = NULL, max_hold_until = NULL,
    next_run_at = IF(repeatable = 1 AND lane = 'S', '1970-01-01', NULL),
    thread_no = ?, log_no = ?, token = ?, fence = fence + 1, rev = rev + 1,
    send_until = IF(sends = ?,
        TIMESTAMP'1970-01-01 00:00:00' + INTERVAL NULLIF(?, 0) MICROSECOND, send_until),
    sends = IF(? AND sends > 0, sends - 1, sends),
    seen_by_channel = seen_by_channel OR ?,
    cancel_tried = cancel_tried OR ?,
    not_found_since = CASE ? WHEN 1 THEN COALESCE(not_found_since, UTC_TIMESTAMP(6))
        WHEN 2 THEN NULL ELSE not_found_since END,
    channel_ref = COALESCE(?, channel_ref), remark = COALESCE(?, remark), actor = ?,
    updated_at = UTC_TIMESTAMP(6)
WHERE cust_no = ? AND serial_no = ? AND op_code = ? AND status = 'P' AND fence = ?
    AND token = ?
