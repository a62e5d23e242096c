-- The committed step before a compensating attempt sends: one more send may have left, until this
-- holder's max_hold, which starts anew.  Nothing is armed against a conflict, success evidence, a
-- deadline that passed, after a cancel, or once two operators have decided that it failed (and no
-- worker has refused that); nor by a clock that was set: while that is not settled, or when it is
-- not between the moments where its sender expects it.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET step = 'arm', thread_no = ?, log_no = ?, token = ?, fence = fence + 1,
    rev = rev + 1, sends = sends + 1, not_found_since = NULL,
    max_hold_until = UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND,
    send_until = GREATEST(COALESCE(send_until, max_hold_until), max_hold_until),
    next_run_at = GREATEST(max_hold_until, SYSDATE(6) + INTERVAL 5 SECOND), actor = NULL,
    updated_at = UTC_TIMESTAMP(6)
WHERE cust_no = ? AND serial_no = ? AND op_code = ? AND status = 'P' AND fence = ?
    AND token = ? AND conflict = 0 AND cancel_tried = 0
    AND (success_epoch IS NULL OR success_epoch <> epoch)
    AND (deadline_at IS NULL OR deadline_at > UTC_TIMESTAMP(6))
    AND NOT EXISTS (SELECT 1 FROM trade_resolution d
        LEFT JOIN trade_resolution n ON n.cust_no = d.cust_no AND n.serial_no = d.serial_no
            AND n.op_code = d.op_code AND n.rev = d.rev AND n.verdict = d.verdict
            AND n.part = 3
        WHERE d.cust_no = trade_lock.cust_no AND d.serial_no = trade_lock.serial_no
            AND d.op_code = trade_lock.op_code AND d.epoch = trade_lock.epoch
            AND d.verdict = 'F' AND d.part = 2 AND n.part IS NULL)
    AND UTC_TIMESTAMP(6) BETWEEN CAST('1970-01-01' AS DATETIME(6)) + INTERVAL ? MICROSECOND
        AND CAST('1970-01-01' AS DATETIME(6)) + INTERVAL ? MICROSECOND
    AND EXISTS (SELECT 1 FROM tl_clock c WHERE c.one = 1 AND c.steps = c.settled)
