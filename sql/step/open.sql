-- name: open
-- The holder gives the sync row back without a final answer: the row loses its holder and stays P.
-- A send that provably did nothing is taken off again, and so is what it added to send_until,
-- unless the row counts a send that the holder does not know of. A repeatable trade has no retry
-- row by which it could be found, so it stands at a moment that is never due.
UPDATE trade_lock s FORCE INDEX (PRIMARY)
SET s.step = :name,
    s.session_id = NULL,
    s.max_hold_until = NULL,
    s.next_run_at = IF(s.repeatable = 1 AND s.lane = 'S', '1970-01-01', NULL),
    s.thread_no = :thread_no,
    s.log_no = :log_no,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.send_until = IF(s.sends = :known_sends,
        TIMESTAMP'1970-01-01 00:00:00' + INTERVAL NULLIF(:send_before_us, 0) MICROSECOND,
        s.send_until),
    s.sends = IF(:unsend AND s.sends > 0, s.sends - 1, s.sends),
    s.seen_by_channel = s.seen_by_channel OR :seen_by_channel,
    s.cancel_tried = s.cancel_tried OR :cancel_tried,
    s.not_found_since = CASE :not_found WHEN 1 THEN COALESCE(s.not_found_since, UTC_TIMESTAMP(6))
        WHEN 2 THEN NULL ELSE s.not_found_since END,
    s.channel_ref = COALESCE(:channel_ref, s.channel_ref),
    s.remark = COALESCE(:remark, s.remark),
    s.actor = :actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code
    AND s.status = 'P'
    AND s.fence = :held_fence                                   -- rule fence
    AND s.token = :held_token                                   -- rule token

-- name: open_many
-- The same for many.
UPDATE (SELECT cust_no, serial_no, op_code,
        step AS name, thread_no, log_no, token,
        sends AS known_sends, fence AS send_before_us, retryable AS unsend, seen_by_channel,
        cancel_tried, retryable AS not_found, channel_ref, remark,
        actor, fence AS held_fence, token AS held_token
    FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(
        :cust_no, :serial_no, :op_code, :name, :thread_no, :log_no, :token,
        :known_sends, :send_before_us, :unsend, :seen_by_channel, :cancel_tried,
        :not_found, :channel_ref, :remark, :actor, :held_fence, :held_token)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
SET s.step = j.name,
    s.session_id = NULL,
    s.max_hold_until = NULL,
    s.next_run_at = IF(s.repeatable = 1 AND s.lane = 'S', '1970-01-01', NULL),
    s.thread_no = j.thread_no,
    s.log_no = j.log_no,
    s.token = j.token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.send_until = IF(s.sends = j.known_sends,
        TIMESTAMP'1970-01-01 00:00:00' + INTERVAL NULLIF(j.send_before_us, 0) MICROSECOND,
        s.send_until),
    s.sends = IF(j.unsend AND s.sends > 0, s.sends - 1, s.sends),
    s.seen_by_channel = s.seen_by_channel OR j.seen_by_channel,
    s.cancel_tried = s.cancel_tried OR j.cancel_tried,
    s.not_found_since = CASE j.not_found WHEN 1 THEN COALESCE(s.not_found_since, UTC_TIMESTAMP(6))
        WHEN 2 THEN NULL ELSE s.not_found_since END,
    s.channel_ref = COALESCE(j.channel_ref, s.channel_ref),
    s.remark = COALESCE(j.remark, s.remark),
    s.actor = j.actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P'
    AND s.fence = j.held_fence                                  -- rule fence
    AND s.token = j.held_token                                  -- rule token

-- name: open_lane
-- The second half of opening, in the same transaction: the retry row becomes waiting, or parked,
-- with the sync row's epoch. The fresh token that the first half wrote selects the sync row, so
-- nothing happens if the first half did not. Counters and parking are cleared only if the row was
-- absent, closed or of an older epoch. An attempt that a restored server kept from doing anything
-- is not counted, and :keep_claims 2 takes a claim back by which nothing was begun. The lane is due
-- at once if evidence says that money moved, or if any was filed since the grant: a revision above
-- :known_rev shows that. Not so if the holder itself filed it, since it could not be booked. A
-- parked lane has no due time (NULL), unless the caller gives one to have it looked at again. A
-- standalone row in that place becomes the trade's: money goes first, and whoever holds the
-- standalone row finds its fence gone.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
    token, fence, rev, epoch, next_run_at, parked, remark, actor, created_at, updated_at)
SELECT s.cust_no, s.serial_no, CONCAT(s.op_code, _ascii '_RETRY'), 'R', 'F', s.step,
    s.thread_no, s.log_no, s.token,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), s.epoch,
    IF((s.success_epoch = s.epoch OR s.rev > :known_rev) AND :apply_failed = 0, UTC_TIMESTAMP(6),
        UTC_TIMESTAMP(6) + INTERVAL :next_run_ms * 1000 MICROSECOND),
    :park_reason, :remark, s.actor, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
FROM trade_lock s
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code
    AND s.status = 'P' AND s.token = :token
ON DUPLICATE KEY UPDATE
    attempts = IF(trade_lock.epoch <> VALUES(epoch) OR (trade_lock.status = 'F'
        AND trade_lock.next_run_at IS NULL AND trade_lock.parked IS NULL), 0,
        trade_lock.attempts - IF(:not_counted AND trade_lock.attempts > 0, 1, 0)),
    claims = IF(:keep_claims = 0 OR trade_lock.epoch <> VALUES(epoch) OR (trade_lock.status = 'F'
        AND trade_lock.next_run_at IS NULL AND trade_lock.parked IS NULL), 0,
        trade_lock.claims - IF(:keep_claims = 2 AND trade_lock.claims > 0, 1, 0)),
    parked = IF(trade_lock.epoch <> VALUES(epoch) OR VALUES(parked) IS NOT NULL,
        VALUES(parked), trade_lock.parked),
    repeatable = 0, status = 'F', step = VALUES(step), thread_no = VALUES(thread_no),
    log_no = VALUES(log_no), session_id = NULL, token = VALUES(token),
    fence = trade_lock.fence + 1, rev = trade_lock.rev + 1, epoch = VALUES(epoch),
    next_run_at = VALUES(next_run_at),
    remark = COALESCE(VALUES(remark), trade_lock.remark), actor = VALUES(actor),
    updated_at = VALUES(updated_at)

-- name: open_lane_many
-- The same for many.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
    token, fence, rev, epoch, next_run_at, parked, remark, actor, created_at, updated_at)
SELECT s.cust_no, s.serial_no, CONCAT(s.op_code, _ascii '_RETRY'), 'R', 'F', s.step,
    s.thread_no, s.log_no, s.token,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), s.epoch,
    IF((s.success_epoch = s.epoch OR s.rev > j.known_rev) AND j.apply_failed = 0, UTC_TIMESTAMP(6),
        UTC_TIMESTAMP(6) + INTERVAL j.next_run_ms * 1000 MICROSECOND),
    j.park_reason, j.remark, s.actor, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
FROM (SELECT cust_no, serial_no, op_code,
        fence AS known_rev, retryable AS apply_failed, fence AS next_run_ms, parked AS park_reason,
        remark, token, retryable AS not_counted, retryable AS keep_claims
    FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(
        :cust_no, :serial_no, :op_code, :known_rev, :apply_failed, :next_run_ms,
        :park_reason, :remark, :token, :not_counted, :keep_claims)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
WHERE s.status = 'P' AND s.token = j.token
ON DUPLICATE KEY UPDATE
    attempts = IF(trade_lock.epoch <> VALUES(epoch) OR (trade_lock.status = 'F'
        AND trade_lock.next_run_at IS NULL AND trade_lock.parked IS NULL), 0,
        trade_lock.attempts - IF(j.not_counted AND trade_lock.attempts > 0, 1, 0)),
    claims = IF(j.keep_claims = 0 OR trade_lock.epoch <> VALUES(epoch) OR (trade_lock.status = 'F'
        AND trade_lock.next_run_at IS NULL AND trade_lock.parked IS NULL), 0,
        trade_lock.claims - IF(j.keep_claims = 2 AND trade_lock.claims > 0, 1, 0)),
    parked = IF(trade_lock.epoch <> VALUES(epoch) OR VALUES(parked) IS NOT NULL,
        VALUES(parked), trade_lock.parked),
    repeatable = 0, status = 'F', step = VALUES(step), thread_no = VALUES(thread_no),
    log_no = VALUES(log_no), session_id = NULL, token = VALUES(token),
    fence = trade_lock.fence + 1, rev = trade_lock.rev + 1, epoch = VALUES(epoch),
    next_run_at = VALUES(next_run_at),
    remark = COALESCE(VALUES(remark), trade_lock.remark), actor = VALUES(actor),
    updated_at = VALUES(updated_at)

-- name: reap
-- A janitor opens a P row whose holder is not alive: its max_hold is over, or its session is gone
-- or ended.  Death is final and was committed before, so the session is read without a lock; the
-- fence proves that the row is the one that was seen.
UPDATE trade_lock s FORCE INDEX (PRIMARY)
SET s.step = 'reap',
    s.session_id = NULL,
    s.max_hold_until = NULL,
    s.next_run_at = NULL,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.actor = :actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code
    AND s.status = 'P'
    AND s.fence = :held_fence                                   -- rule fence
    AND s.lane = 'S' AND s.repeatable = 0
    AND (s.max_hold_until IS NULL OR s.max_hold_until <= UTC_TIMESTAMP(6)
        OR s.session_id IS NULL
        OR NOT EXISTS (SELECT 1 FROM tl_session x
            WHERE x.session_id = s.session_id AND x.ended_at IS NULL))

-- name: open_now
-- Both rows in one request and one commit. The second statement does nothing where the first did
-- nothing. An error undoes both; some pass the handler by, so the library rolls back after any. The
-- answer comes after the commit and counts the rows of both.
BEGIN NOT ATOMIC
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
/*include open*/
    ;
/*include open_lane*/
    ;
    COMMIT;
END

-- name: reap_now
-- The same for a row whose holder died.
BEGIN NOT ATOMIC
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
/*include reap*/
    ;
/*include open_lane*/
    ;
    COMMIT;
END

-- name: close_lane
-- Closes a retry row that is still open although its sync row is finished or of another epoch.
-- Whoever meets such a row closes it.
UPDATE trade_lock s
STRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
    AND r.op_code = :retry_op
SET r.status = IF(s.status = 'Y' AND r.epoch = s.epoch, 'Y', 'F'),
    r.step = 'close',
    r.thread_no = :thread_no,
    r.token = :token,
    r.session_id = NULL,
    r.next_run_at = NULL,
    r.parked = NULL,
    r.claims = 0,
    r.fence = r.fence + 1,
    r.rev = r.rev + 1,
    r.actor = NULL,
    r.updated_at = UTC_TIMESTAMP(6)
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code
    AND (s.status <> 'P' OR r.epoch <> s.epoch)
    AND (r.next_run_at IS NOT NULL OR r.parked IS NOT NULL OR r.status = 'P')

-- name: operator_retry
-- An operator makes a waiting or parked lane due now, or opens the lane of a holder that died. The
-- procedure decides by the fence that was seen, and commits both rows together
-- (sql/object/operator.sql).
CALL tl_operator_retry(:cust_no, :serial_no, :op_code, :held_fence, :thread_no, :log_no, :token,
    :actor, :remark)

-- name: act_retry
-- As operator_retry, as a row of an act: who and why are the act's, and what became of the row is
-- on record in the same transaction.
CALL tl_act_retry(:act_no, :act_row, :cust_no, :serial_no, :op_code, :held_fence, :thread_no,
    :token)
