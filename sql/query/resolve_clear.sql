-- Two operators clear a conflict: the evidence was wrong, or is dealt with elsewhere.  The
-- rows are held since resolve_lock; the revision says once more that they are those that
-- both saw.  Of a failure the success is forgotten too, or it could never be tried anew.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET step = 'resolve clear', thread_no = ?, log_no = ?, token = ?, fence = fence + 1,
    rev = rev + 1, conflict = 0, success_epoch = IF(status = 'F', NULL, success_epoch),
    actor = ?, remark = ?, updated_at = UTC_TIMESTAMP(6)
WHERE cust_no = ? AND serial_no = ? AND op_code = ? AND rev = ? AND conflict = 1
    AND (status <> 'P' OR session_id IS NULL)
