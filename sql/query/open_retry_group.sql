-- open_retry.sql for the trades that open_group.sql has opened in the same transaction; each holder
-- lived, so that nothing of its claims is left.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
    token, fence, rev, epoch, next_run_at, parked, remark, actor, created_at,
    updated_at)
SELECT s.cust_no, s.serial_no, CONCAT(s.op_code, _ascii '_RETRY'), 'R', 'F', s.step,
    s.thread_no, s.log_no, s.token,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), s.epoch,
    IF(s.success_epoch = s.epoch AND j.apply_failed = 0, UTC_TIMESTAMP(6),
        UTC_TIMESTAMP(6) + INTERVAL j.next_run_ms * 1000 MICROSECOND),
    j.park_reason, j.remark, s.actor, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
FROM (SELECT cust_no, serial_no, op_code, token, retryable AS apply_failed,
        rev AS next_run_ms, parked AS park_reason, remark
    FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(?, ?, ?, ?, ?, ?, ?, ?)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
WHERE s.status = 'P' AND s.token = j.token
ON DUPLICATE KEY UPDATE
    attempts = IF(trade_lock.epoch <> VALUES(epoch) OR (trade_lock.status = 'F'
        AND trade_lock.next_run_at IS NULL AND trade_lock.parked IS NULL), 0,
        trade_lock.attempts),
    claims = 0,
    parked = IF(trade_lock.epoch <> VALUES(epoch) OR VALUES(parked) IS NOT NULL,
        VALUES(parked), trade_lock.parked),
    repeatable = 0, status = 'F', step = VALUES(step), thread_no = VALUES(thread_no),
    log_no = VALUES(log_no), session_id = NULL, token = VALUES(token),
    fence = trade_lock.fence + 1, rev = trade_lock.rev + 1, epoch = VALUES(epoch),
    next_run_at = VALUES(next_run_at),
    remark = COALESCE(VALUES(remark), trade_lock.remark), actor = VALUES(actor),
    updated_at = VALUES(updated_at)
