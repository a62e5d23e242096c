-- A proven failure is tried anew, as the next epoch with a new channel key.  The caller names the
-- epoch it saw: of two reclaimers one finds another epoch and is refused.  Whoever asked the
-- channel about the old keys names the fence too: a failure that operators, or another attempt,
-- have decided anew since then is one that nobody asked about.  0: any.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET status = 'P', step = 'reclaim', thread_no = ?, log_no = ?, session_id = ?, token = ?,
    fence = fence + 1, rev = rev + 1, epoch = epoch + 1, sends = ?,
    max_hold_until = UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND,
    send_until = IF(sends > 0, max_hold_until, NULL),
    next_run_at = GREATEST(max_hold_until, SYSDATE(6) + INTERVAL 5 SECOND),
    deadline_at = UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND,
    exclusive = ?, channel_key = ?, channel_ref = NULL, not_found_since = NULL,
    seen_by_channel = 0, cancel_tried = 0, retryable = 0, proof = '-', result = NULL,
    remark = ?, actor = ?, updated_at = UTC_TIMESTAMP(6)
WHERE cust_no = ? AND serial_no = ? AND op_code = ?
    AND status = 'F' AND epoch = ? AND (? = 0 OR fence = ?) AND retryable = 1
    AND conflict = 0 AND repeatable = 0 AND fingerprint <=> ?
