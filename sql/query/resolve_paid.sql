-- Two operators say that a failure was paid after all.  The row is P again, without a
-- holder and with the success on it, so that no failure can be written and nothing can be
-- sent; open_retry makes its lane due in the same transaction, and the workflow's own
-- program ends it as Y together with its business rows.  Another trade of an exclusive
-- customer that is in process refuses this one by its unique key.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET step = 'resolve paid', thread_no = ?, log_no = ?, token = ?, fence = fence + 1,
    rev = rev + 1, status = 'P', session_id = NULL, max_hold_until = NULL,
    next_run_at = NULL, conflict = 0, success_epoch = epoch, proof = '-',
    retryable = 0, result = NULL, actor = ?, remark = ?, updated_at = UTC_TIMESTAMP(6)
WHERE cust_no = ? AND serial_no = ? AND op_code = ? AND rev = ? AND status = 'F'
    AND conflict = 1
