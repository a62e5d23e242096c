-- name: claim
-- Claims the retry-compensation lock: one compensating attempt gets in. One statement changes both
-- rows, sync row first. A waiting retry row of the same epoch means that the sync row has no
-- holder. claim_as 0: a claim by key, of a row that is due and not parked; 2: a worker's claim,
-- which may also take a parked row that became due; 1: an operator's override, bound to the fence
-- that was seen. The claim's log UUID is the thread's, else that of the trade's first ask, else
-- that of its last step, else a new one.
UPDATE trade_lock s
STRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
    AND r.op_code = :retry_op
SET s.step = 'claim',
    s.thread_no = :thread_no,
    s.log_no = COALESCE(:log_no, s.first_log_no, s.log_no, :new_log_no),
    s.session_id = :session_id,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.max_hold_until = UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    s.next_run_at = GREATEST(UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
        SYSDATE(6) + INTERVAL 5 SECOND),
    s.actor = NULL,
    s.updated_at = UTC_TIMESTAMP(6),
    r.status = 'P',
    r.step = 'claim',
    r.thread_no = :thread_no,
    r.log_no = COALESCE(:log_no, s.first_log_no, s.log_no, :new_log_no),
    r.session_id = :session_id,
    r.token = :token,
    r.fence = r.fence + 1,
    r.rev = r.rev + 1,
    r.attempts = r.attempts + 1,
    r.claims = r.claims + 1,
    r.next_run_at = NULL,
    r.actor = NULL,
    r.updated_at = UTC_TIMESTAMP(6)
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code
    AND s.status = 'P' AND s.session_id IS NULL AND r.status = 'F' AND r.epoch = s.epoch
    AND (:claim_as = 1 OR (r.next_run_at <= UTC_TIMESTAMP(6)
        AND (r.parked IS NULL OR :claim_as = 2)))
    AND (:claim_as <> 1 OR s.fence = :override_fence)           -- rule fence

-- name: claim_many
-- The same for many. The list of values is joined with the table; the first SELECT gives its
-- columns their types. Every statement for many steps forces the key: on a table that is small, or
-- seems so, the server would read all of it, and lock or meet rows of other trades.
UPDATE (SELECT cust_no, serial_no, op_code,
        op_code AS retry_op, thread_no, log_no, log_no AS new_log_no,
        session_id, token, fence AS max_hold_ms, retryable AS claim_as,
        fence AS override_fence
    FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(
        :cust_no, :serial_no, :op_code, :retry_op, :thread_no, :log_no, :new_log_no,
        :session_id, :token, :max_hold_ms, :claim_as, :override_fence)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
STRAIGHT_JOIN trade_lock r FORCE INDEX (PRIMARY) ON r.cust_no = s.cust_no
    AND r.serial_no = s.serial_no AND r.op_code = j.retry_op
SET s.step = 'claim',
    s.thread_no = j.thread_no,
    s.log_no = COALESCE(j.log_no, s.first_log_no, s.log_no, j.new_log_no),
    s.session_id = j.session_id,
    s.token = j.token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.max_hold_until = UTC_TIMESTAMP(6) + INTERVAL j.max_hold_ms * 1000 MICROSECOND,
    s.next_run_at = GREATEST(UTC_TIMESTAMP(6) + INTERVAL j.max_hold_ms * 1000 MICROSECOND,
        SYSDATE(6) + INTERVAL 5 SECOND),
    s.actor = NULL,
    s.updated_at = UTC_TIMESTAMP(6),
    r.status = 'P',
    r.step = 'claim',
    r.thread_no = j.thread_no,
    r.log_no = COALESCE(j.log_no, s.first_log_no, s.log_no, j.new_log_no),
    r.session_id = j.session_id,
    r.token = j.token,
    r.fence = r.fence + 1,
    r.rev = r.rev + 1,
    r.attempts = r.attempts + 1,
    r.claims = r.claims + 1,
    r.next_run_at = NULL,
    r.actor = NULL,
    r.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P' AND s.session_id IS NULL AND r.status = 'F' AND r.epoch = s.epoch
    AND (j.claim_as = 1 OR (r.next_run_at <= UTC_TIMESTAMP(6)
        AND (r.parked IS NULL OR j.claim_as = 2)))
    AND (j.claim_as <> 1 OR s.fence = j.override_fence)         -- rule fence

-- name: arm
-- Arming: committed before a compensating attempt sends.  From here on one more send may have left,
-- until the end of this holder's max_hold, which starts anew. Nothing is armed against a conflict
-- or success evidence, after the deadline, after a cancel, or once two operators have decided that
-- the payment failed (unless a worker refused that decision). Nothing is armed by a clock that was
-- set either: while rows are not adjusted to a jump, after one that the sender did not know of, or
-- when the clock is not between the moments at which the sender expects it.
UPDATE trade_lock s FORCE INDEX (PRIMARY)
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
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code
    AND s.status = 'P'
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

-- name: reclaim
-- Tries a proven failure anew, as the next epoch with a new channel key.  The caller names the
-- epoch that it saw: of two reclaimers, one finds another epoch and is refused.  A caller that
-- asked the channel about the old keys also names the fence (0: any).  If operators or another
-- attempt have since made it another failure, nobody asked the channel about that one.  A trade
-- stays with the channel that its row names.
UPDATE trade_lock s FORCE INDEX (PRIMARY)
SET s.status = 'P',
    s.step = 'reclaim',
    s.thread_no = :thread_no,
    s.log_no = :log_no,
    s.session_id = :session_id,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.epoch = s.epoch + 1,
    s.sends = :sends,
    s.max_hold_until = UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    s.send_until = IF(:sends > 0,
        UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND, NULL),
    s.next_run_at = GREATEST(UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
        SYSDATE(6) + INTERVAL 5 SECOND),
    s.deadline_at = UTC_TIMESTAMP(6) + INTERVAL :deadline_ms * 1000 MICROSECOND,
    s.exclusive = :exclusive,
    s.channel_key = :channel_key,
    s.channel_ref = NULL,
    s.not_found_since = NULL,
    s.seen_by_channel = 0,
    s.cancel_tried = 0,
    s.retryable = 0,
    s.proof = '-',
    s.result = NULL,
    s.remark = :remark,
    s.actor = :actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code
    AND s.status = 'F' AND s.epoch = :reclaim_epoch
    AND (:reclaim_fence = 0 OR s.fence = :reclaim_fence)        -- rule fence
    AND s.retryable = 1 AND s.conflict = 0 AND s.repeatable = 0
    AND s.fingerprint <=> :fingerprint AND s.channel <=> :channel

-- name: reclaim_many
-- The same for many.
UPDATE (SELECT cust_no, serial_no, op_code,
        thread_no, log_no, session_id, token,
        sends, fence AS max_hold_ms, fence AS deadline_ms, exclusive,
        channel_key, remark, actor, epoch AS reclaim_epoch,
        fence AS reclaim_fence, fingerprint, channel
    FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(
        :cust_no, :serial_no, :op_code, :thread_no, :log_no, :session_id, :token,
        :sends, :max_hold_ms, :deadline_ms, :exclusive, :channel_key, :remark, :actor,
        :reclaim_epoch, :reclaim_fence, :fingerprint, :channel)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
SET s.status = 'P',
    s.step = 'reclaim',
    s.thread_no = j.thread_no,
    s.log_no = j.log_no,
    s.session_id = j.session_id,
    s.token = j.token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.epoch = s.epoch + 1,
    s.sends = j.sends,
    s.max_hold_until = UTC_TIMESTAMP(6) + INTERVAL j.max_hold_ms * 1000 MICROSECOND,
    s.send_until = IF(j.sends > 0,
        UTC_TIMESTAMP(6) + INTERVAL j.max_hold_ms * 1000 MICROSECOND, NULL),
    s.next_run_at = GREATEST(UTC_TIMESTAMP(6) + INTERVAL j.max_hold_ms * 1000 MICROSECOND,
        SYSDATE(6) + INTERVAL 5 SECOND),
    s.deadline_at = UTC_TIMESTAMP(6) + INTERVAL j.deadline_ms * 1000 MICROSECOND,
    s.exclusive = j.exclusive,
    s.channel_key = j.channel_key,
    s.channel_ref = NULL,
    s.not_found_since = NULL,
    s.seen_by_channel = 0,
    s.cancel_tried = 0,
    s.retryable = 0,
    s.proof = '-',
    s.result = NULL,
    s.remark = j.remark,
    s.actor = j.actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'F' AND s.epoch = j.reclaim_epoch
    AND (j.reclaim_fence = 0 OR s.fence = j.reclaim_fence)      -- rule fence
    AND s.retryable = 1 AND s.conflict = 0 AND s.repeatable = 0
    AND s.fingerprint <=> j.fingerprint AND s.channel <=> j.channel
