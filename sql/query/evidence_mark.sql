-- What the evidence does to the sync row, held since evidence_lock: success of this epoch
-- is remembered; success that contradicts the row sets the conflict.  Token and fence stay,
-- since the holder is not disturbed.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET step = 'evidence', rev = rev + 1, thread_no = ?,
    success_epoch = IF(?, epoch, success_epoch), conflict = conflict OR ?,
    seen_by_channel = seen_by_channel OR ?, actor = NULL, updated_at = UTC_TIMESTAMP(6)
WHERE cust_no = ? AND serial_no = ? AND op_code = ?
