-- The ending of a compensating attempt, both rows in one statement: the sync row's fence and token
-- decide, the retry row follows.  The join is written sync row first, which is the lock order
-- everywhere.  On failure the retry row is closed: F, not due, not parked. What an earlier attempt
-- remarked of its failure is not kept on a success. That two operators decided is a proof only when
-- they did: both halves, about one revision, by two persons, not refused since by a worker; after
-- it nothing was armed (arm.sql), and no earlier send can be under way.  The last parameter is the
-- proof once more.  The one before is 1 on a caller's connection: after a deadlock the client
-- library still believes in the transaction that the server rolled back, and the ending would
-- commit alone.
UPDATE trade_lock s
STRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
    AND r.op_code = ?
SET s.status = ?, s.step = 'end', s.max_hold_until = NULL,
    s.thread_no = ?, s.log_no = ?, s.token = ?, s.fence = s.fence + 1, s.rev = s.rev + 1,
    s.proof = ?, s.retryable = ?,
    s.channel_ref = COALESCE(?, s.channel_ref), s.result = ?,
    s.remark = COALESCE(?, IF(? = 'Y', NULL, s.remark)), s.actor = ?,
    s.updated_at = UTC_TIMESTAMP(6),
    r.status = ?, r.step = 'end', r.thread_no = ?, r.log_no = ?, r.token = ?,
    r.session_id = NULL, r.next_run_at = NULL, r.parked = NULL, r.claims = 0,
    r.fence = r.fence + 1, r.rev = r.rev + 1, r.actor = NULL,
    r.remark = IF(? = 'Y', NULL, r.remark), r.updated_at = UTC_TIMESTAMP(6)
WHERE s.cust_no = ? AND s.serial_no = ? AND s.op_code = ? AND s.status = 'P'
    AND s.fence = ? AND s.token = ?
    AND (? = 'Y' OR s.success_epoch IS NULL OR s.success_epoch <> s.epoch)
    AND (? = 0 OR @@in_transaction = 1)
    AND (? <> 'O' OR ((s.send_until IS NULL OR s.send_until <= UTC_TIMESTAMP(6))
        AND EXISTS (SELECT 1 FROM trade_resolution d
            JOIN trade_resolution p ON p.cust_no = d.cust_no AND p.serial_no = d.serial_no
                AND p.op_code = d.op_code AND p.rev = d.rev AND p.verdict = d.verdict
                AND p.part = 1
            LEFT JOIN trade_resolution n ON n.cust_no = d.cust_no
                AND n.serial_no = d.serial_no AND n.op_code = d.op_code AND n.rev = d.rev
                AND n.verdict = d.verdict AND n.part = 3
            WHERE d.cust_no = s.cust_no AND d.serial_no = s.serial_no
                AND d.op_code = s.op_code AND d.epoch = s.epoch AND d.verdict = 'F'
                AND d.part = 2 AND n.part IS NULL
                AND tl_account_name(p.account) <> tl_account_name(d.account))))
