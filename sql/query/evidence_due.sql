-- A waiting or parked lane of this epoch becomes due at once.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET step = 'evidence', rev = rev + 1, fence = fence + 1, thread_no = ?,
    next_run_at = UTC_TIMESTAMP(6), actor = NULL, updated_at = UTC_TIMESTAMP(6)
WHERE cust_no = ? AND serial_no = ? AND op_code = ? AND status = 'F' AND epoch = ?
    AND (next_run_at IS NOT NULL OR parked IS NOT NULL)
