-- Arming: committed before a compensating attempt sends.  From here on one more send may have left,
-- until the end of this holder's max_hold, which starts anew. Nothing is armed against a conflict
-- or success evidence, after the deadline, after a cancel, or once two operators have decided that
-- the payment failed (unless a worker refused that decision). Nothing is armed by a clock that was
-- set either: while rows are not adjusted to a jump, after one that the sender did not know of, or
-- when the clock is not between the moments at which the sender expects it.
UPDATE s
SET s.step = 'arm',
    s.thread_no = :thread_no,
    s.log_no = :log_no,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.sends = s.sends + 1,
    s.not_found_since = NULL,
    s.max_hold_until = UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    s.send_until = GREATEST(COALESCE(s.send_until, s.max_hold_until), s.max_hold_until),
    s.next_run_at = GREATEST(s.max_hold_until, SYSDATE(6) + INTERVAL 5 SECOND),
    s.actor = NULL,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P'
    AND s.fence = :held_fence                                   -- rule fence
    AND s.token = :held_token                                   -- rule token
    AND s.conflict = 0 AND s.cancel_tried = 0
    AND (s.success_epoch IS NULL OR s.success_epoch <> s.epoch)
    AND (s.deadline_at IS NULL OR s.deadline_at > UTC_TIMESTAMP(6))
    AND NOT EXISTS (SELECT 1 FROM trade_resolution d
        LEFT JOIN trade_resolution n ON n.cust_no = d.cust_no AND n.serial_no = d.serial_no
            AND n.op_code = d.op_code AND n.rev = d.rev AND n.verdict = d.verdict
            AND n.part = 3
        WHERE d.cust_no = s.cust_no AND d.serial_no = s.serial_no
            AND d.op_code = s.op_code AND d.epoch = s.epoch
            AND d.verdict = 'F' AND d.part = 2 AND n.part IS NULL)
    AND UTC_TIMESTAMP(6)
        BETWEEN CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :least_us MICROSECOND
        AND CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :most_us MICROSECOND
    AND EXISTS (SELECT 1 FROM tl_clock c WHERE c.one = 1 AND c.steps = c.settled
        AND c.steps = :clock_jumps)
