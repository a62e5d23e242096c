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
form open_lane: one row, alone
form open_lane_many: one row, many

INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
    token, fence, rev, epoch, next_run_at, parked, remark, actor, created_at, updated_at)
SELECT s.cust_no, s.serial_no, CONCAT(s.op_code, _ascii '_RETRY'), 'R', 'F', s.step,
    s.thread_no, s.log_no, s.token,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), s.epoch,
    IF((s.success_epoch = s.epoch OR s.rev > :known_rev) AND :apply_failed = 0, UTC_TIMESTAMP(6),
        UTC_TIMESTAMP(6) + INTERVAL :next_run_ms * 1000 MICROSECOND),
    :park_reason, :remark, s.actor, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
FROM s
WHERE s.status = 'P' AND s.token = :token
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
