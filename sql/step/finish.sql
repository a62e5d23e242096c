-- name: finish_sync
-- An ending, P -> Y or F, of a holder that owns one row only; the first statement of its
-- transaction, and most often the only one. Status, fence and token together prove that nobody took
-- the lock over in between; 0 rows means that it is lost. A failure is refused when evidence of
-- this epoch says that money moved: the filing locks this same row, so either it is seen here, or
-- it finds the F and sets the conflict. So is one in conflict, since evidence of another epoch,
-- payment or amount says that money moved: two operators clear the conflict or decide the failure.
--
-- A finished trade keeps its holder and its next moment, so the due index stays as it is. A
-- repeatable trade loses its holder, since it is used again. in_caller is 1 on a caller's
-- connection: after a deadlock the client library still believes in the transaction that the server
-- rolled back, and the ending would commit alone. In a group, the endings of ask.sql do the same.
UPDATE trade_lock s FORCE INDEX (PRIMARY)
SET s.status = :status,
    s.step = 'end',
    s.max_hold_until = NULL,
    s.session_id = IF(s.repeatable = 1, NULL, s.session_id),
    s.thread_no = :thread_no,
    s.log_no = :log_no,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.proof = :proof,
    s.retryable = :retryable,
    s.channel_ref = COALESCE(:channel_ref, s.channel_ref),
    s.remark = COALESCE(:remark, s.remark),
    s.result = :result,
    s.actor = :actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code
    AND s.status = 'P'
    AND s.fence = :held_fence                                   -- rule fence
    AND s.token = :held_token                                   -- rule token
    AND (:status = 'Y' OR s.success_epoch IS NULL OR s.success_epoch <> s.epoch)
    AND (:status = 'Y' OR s.conflict = 0 OR :proof = 'O')
    AND (:in_caller = 0 OR @@in_transaction = 1)

-- name: finish_retry
-- An ending of a compensating attempt; one statement changes both rows. The sync row's fence and
-- token decide, and the retry row follows. The join names the sync row first, which is the lock
-- order everywhere. On failure the retry row is closed: F, not due, not parked. On success the
-- remark of an earlier failure is dropped.
--
-- The proof 'O' says that two operators decided. It counts only if they did: both halves, about one
-- revision, by two persons, not refused since by a worker. Nothing was armed after it (arm), and no
-- earlier send can be under way. by_time is 1 for a failure that rests on moments in the claimed
-- row, such as a grace that is over. It is refused if the clock was set since before the claim was
-- sent, or while rows are not adjusted: the row may have shown an old moment beside a new one. The
-- server locks the row of tl_clock for this. Its key comes from s, since the server reads a row
-- with a constant key beforehand, for successes too.
UPDATE trade_lock s
STRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
    AND r.op_code = :retry_op
SET s.status = :status,
    s.step = 'end',
    s.max_hold_until = NULL,
    s.thread_no = :thread_no,
    s.log_no = :log_no,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.proof = :proof,
    s.retryable = :retryable,
    s.channel_ref = COALESCE(:channel_ref, s.channel_ref),
    s.remark = COALESCE(:remark, IF(:status = 'Y', NULL, s.remark)),
    s.result = :result,
    s.actor = :actor,
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
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code
    AND s.status = 'P'
    AND s.fence = :held_fence                                   -- rule fence
    AND s.token = :held_token                                   -- rule token
    AND (:status = 'Y' OR s.success_epoch IS NULL OR s.success_epoch <> s.epoch)
    AND (:status = 'Y' OR s.conflict = 0 OR :proof = 'O')
    AND (:in_caller = 0 OR @@in_transaction = 1)
    AND (:by_time = 0
        OR EXISTS (SELECT 1 FROM tl_clock c
            WHERE c.one = (s.status = 'P') AND c.steps = c.settled
                AND c.steps = :clock_jumps))
    AND (:proof <> 'O'
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

-- name: finish_retry_short
-- The same for a success of which nothing else is told. An update of two rows keeps what it sets in
-- a temporary table, and with a BLOB, the result, that one is a file: this form costs a third.
UPDATE trade_lock s
STRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
    AND r.op_code = :retry_op
SET s.status = 'Y',
    s.step = 'end',
    s.max_hold_until = NULL,
    s.thread_no = :thread_no,
    s.log_no = :log_no,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.proof = '-',
    s.retryable = 0,
    s.channel_ref = COALESCE(:channel_ref, s.channel_ref),
    s.remark = COALESCE(:remark, IF(:status = 'Y', NULL, s.remark)),
    s.actor = NULL,
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
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code
    AND s.status = 'P'
    AND s.fence = :held_fence                                   -- rule fence
    AND s.token = :held_token                                   -- rule token

-- name: finish_retry_many
-- finish_retry for many; the two persons' decision is carried out alone.
UPDATE (SELECT cust_no, serial_no, op_code,
        op_code AS retry_op, status, thread_no, log_no,
        token, proof, retryable, channel_ref,
        remark, result, actor, fence AS held_fence,
        token AS held_token, retryable AS by_time, sends AS clock_jumps
    FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(
        :cust_no, :serial_no, :op_code, :retry_op, :status, :thread_no, :log_no, :token,
        :proof, :retryable, :channel_ref, :remark, :result, :actor, :held_fence,
        :held_token, :by_time, :clock_jumps)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
STRAIGHT_JOIN trade_lock r FORCE INDEX (PRIMARY) ON r.cust_no = s.cust_no
    AND r.serial_no = s.serial_no AND r.op_code = j.retry_op
SET s.status = j.status,
    s.step = 'end',
    s.max_hold_until = NULL,
    s.thread_no = j.thread_no,
    s.log_no = j.log_no,
    s.token = j.token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.proof = j.proof,
    s.retryable = j.retryable,
    s.channel_ref = COALESCE(j.channel_ref, s.channel_ref),
    s.remark = COALESCE(j.remark, IF(j.status = 'Y', NULL, s.remark)),
    s.result = j.result,
    s.actor = j.actor,
    s.updated_at = UTC_TIMESTAMP(6),
    r.status = j.status,
    r.step = 'end',
    r.thread_no = j.thread_no,
    r.log_no = j.log_no,
    r.token = j.token,
    r.session_id = NULL,
    r.next_run_at = NULL,
    r.parked = NULL,
    r.claims = 0,
    r.fence = r.fence + 1,
    r.rev = r.rev + 1,
    r.actor = NULL,
    r.remark = IF(j.status = 'Y', NULL, r.remark),
    r.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P'
    AND s.fence = j.held_fence                                  -- rule fence
    AND s.token = j.held_token                                  -- rule token
    AND (j.status = 'Y' OR s.success_epoch IS NULL OR s.success_epoch <> s.epoch)
    AND (j.status = 'Y' OR s.conflict = 0 OR j.proof = 'O')
    AND (j.by_time = 0
        OR EXISTS (SELECT 1 FROM tl_clock c
            WHERE c.one = (s.status = 'P') AND c.steps = c.settled
                AND c.steps = j.clock_jumps))

-- name: finish_retry_many_short
-- finish_retry_short for many.
UPDATE (SELECT cust_no, serial_no, op_code,
        op_code AS retry_op, thread_no, log_no, token,
        channel_ref, remark, status, fence AS held_fence,
        token AS held_token
    FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(
        :cust_no, :serial_no, :op_code, :retry_op, :thread_no, :log_no, :token,
        :channel_ref, :remark, :status, :held_fence, :held_token)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
STRAIGHT_JOIN trade_lock r FORCE INDEX (PRIMARY) ON r.cust_no = s.cust_no
    AND r.serial_no = s.serial_no AND r.op_code = j.retry_op
SET s.status = 'Y',
    s.step = 'end',
    s.max_hold_until = NULL,
    s.thread_no = j.thread_no,
    s.log_no = j.log_no,
    s.token = j.token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.proof = '-',
    s.retryable = 0,
    s.channel_ref = COALESCE(j.channel_ref, s.channel_ref),
    s.remark = COALESCE(j.remark, IF(j.status = 'Y', NULL, s.remark)),
    s.actor = NULL,
    s.updated_at = UTC_TIMESTAMP(6),
    r.status = j.status,
    r.step = 'end',
    r.thread_no = j.thread_no,
    r.log_no = j.log_no,
    r.token = j.token,
    r.session_id = NULL,
    r.next_run_at = NULL,
    r.parked = NULL,
    r.claims = 0,
    r.fence = r.fence + 1,
    r.rev = r.rev + 1,
    r.actor = NULL,
    r.remark = IF(j.status = 'Y', NULL, r.remark),
    r.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P'
    AND s.fence = j.held_fence                                  -- rule fence
    AND s.token = j.held_token                                  -- rule token
