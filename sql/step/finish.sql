-- An ending, P -> Y or F. Status, fence and token together prove that nobody took the lock over in
-- between; 0 rows means that it is lost. A failure is refused when evidence of this epoch says that
-- money moved: the filing locks this same row, so either it is seen here, or it finds the F and
-- sets the conflict. So is one in conflict, since evidence of another epoch, payment or amount says
-- that money moved: two operators clear the conflict or decide the failure.
--
-- finish_sync: for a holder that owns one row only; the first statement of its transaction, and
-- most often the only one. A finished trade keeps its holder and its next moment, so the due index
-- stays as it is. A repeatable trade loses its holder, since it is used again. The short form is a
-- trade's success of which nothing else is told. In a group, the endings among the rows of ask.sql
-- do the same. finish_retry: for a compensating attempt; one statement changes both rows. The sync
-- row's fence and token decide, and the retry row follows. The join names the sync row first, which
-- is the lock order everywhere. On failure the retry row is closed: F, not due, not parked. On
-- success the remark of an earlier failure is dropped. An update of two rows keeps what it sets in
-- a temporary table, and with a BLOB, the result, that one is a file: the short form costs a third.
--
-- in_caller is 1 on a caller's connection. After a deadlock the client library still believes in
-- the transaction that the server rolled back, and the ending would commit alone. The proof 'O'
-- says that two operators decided. It counts only if they did: both halves, about one revision, by
-- two persons, not refused since by a worker. Nothing was armed after it (arm.sql), and no earlier
-- send can be under way. by_time is 1 for a failure that rests on moments in the claimed row, such
-- as a grace that is over. It is refused if the clock was set since before the claim was sent, or
-- while rows are not adjusted: the row may have shown an old moment beside a new one. The server
-- locks the row of tl_clock for this. Its key comes from s, since the server reads a row with a
-- constant key beforehand, for successes too.
form finish_sync: one row, alone
form finish_sync_short: one row, alone, short
form finish_retry: both rows, alone
form finish_retry_short: both rows, alone, short
form finish_retry_many: both rows, many
form finish_retry_many_short: both rows, many, short

UPDATE s
SET s.status = :status,                                         -- short: 'Y'
    s.step = 'end',
    s.max_hold_until = NULL,
    s.session_id = IF(s.repeatable = 1, NULL, s.session_id),    -- one row, not short
    s.thread_no = :thread_no,
    s.log_no = :log_no,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.proof = :proof,                                           -- short: '-'
    s.retryable = :retryable,                                   -- short: 0
    s.channel_ref = COALESCE(:channel_ref, s.channel_ref),      -- one row, not short
    s.channel_ref = COALESCE(:channel_ref, s.channel_ref),      -- both rows
    s.remark = COALESCE(:remark, s.remark),                     -- one row, not short
    s.remark = COALESCE(:remark, IF(:status = 'Y', NULL, s.remark)), -- both rows
    s.result = :result,                                         -- not short
    s.actor = :actor,                                           -- short: NULL
    s.updated_at = UTC_TIMESTAMP(6),
    r.status = :status,
    r.step = 'end',
    r.thread_no = :thread_no,
    r.log_no = :log_no,
    r.token = :token,
    r.session_id = NULL,
    r.next_run_at = NULL,
    r.parked = NULL,
    r.claims = 0,
    r.fence = r.fence + 1,
    r.rev = r.rev + 1,
    r.actor = NULL,
    r.remark = IF(:status = 'Y', NULL, r.remark),
    r.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P'
    AND s.fence = :held_fence                                   -- rule fence
    AND s.token = :held_token                                   -- rule token
    AND (:status = 'Y' OR s.success_epoch IS NULL OR s.success_epoch <> s.epoch) -- not short
    AND (:status = 'Y' OR s.conflict = 0 OR :proof = 'O') -- not short
    AND (:in_caller = 0 OR @@in_transaction = 1)                -- alone, not short
    AND (:by_time = 0                                           -- both rows, not short
        OR EXISTS (SELECT 1 FROM tl_clock c
            WHERE c.one = (s.status = 'P') AND c.steps = c.settled
                AND c.steps = :clock_jumps))
    AND (:proof <> 'O'                                          -- both rows, alone, not short
        OR ((s.send_until IS NULL OR s.send_until <= UTC_TIMESTAMP(6))
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
