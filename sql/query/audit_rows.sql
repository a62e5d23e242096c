-- A page of the rows in the order of their key. Each row is given as a step, in the columns of
-- audit_log.sql. Then come what a channel's statement is compared with; whether trade_lock_past has
-- steps of it (then audit_log.sql has all its history); whether it is in process before the
-- low-water mark, where no janitor looks (a clock that was set back is behind the mark for a
-- moment); and whether it is in process without a holder, while its lane is neither claimed nor due
-- nor parked, so that nobody ever comes. If trade_lock_past has no step of a row, the first step, which the row keeps itself,
-- stands before it, marked by the last column; the two are all of its history. In such a history
-- operators have decided nothing, since a decision always has a step before it in trade_lock_past;
-- so the number of operators is 0.
WITH page AS (
    SELECT cust_no, serial_no, op_code, rev, step, status, token, fence, epoch, proof,
        session_id, logged_at, max_hold_until,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) AS made_rev, channel_key, conflict,
        success_epoch, lane, channel, next_run_at, account, repeatable, amount_minor, currency,
        EXISTS (SELECT 1 FROM trade_lock_past l WHERE l.cust_no = t.cust_no
            AND l.serial_no = t.serial_no AND l.op_code = t.op_code) AS has_past
    FROM trade_lock t
    WHERE cust_no >= :cust_no AND (cust_no > :cust_no OR (cust_no = :cust_no
        AND (serial_no > :serial_no
        OR (serial_no = :serial_no AND op_code > :op_code))))
    ORDER BY cust_no, serial_no, op_code
    LIMIT :most),
steps AS (
    SELECT page.*, 0 AS is_first FROM page
    UNION ALL
    SELECT f.cust_no, f.serial_no, f.op_code, f.rev, f.step, f.status, f.token, f.fence,
        f.epoch, f.proof, f.session_id, f.logged_at, f.max_hold_until, p.made_rev,
        f.channel_key, f.conflict, NULL, p.lane, p.channel, f.next_run_at, f.account,
        p.repeatable, p.amount_minor, p.currency, 0, 1
    FROM page p JOIN trade_lock_first f ON f.cust_no = p.cust_no
        AND f.serial_no = p.serial_no AND f.op_code = p.op_code
    WHERE NOT p.has_past)
SELECT t.cust_no, t.serial_no, t.op_code, t.rev, t.step, t.status, t.token, t.fence, t.epoch,
    t.proof, COALESCE(t.session_id, ''),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.logged_at),
    COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.max_hold_until), 0),
    IF(x.session_id IS NULL, 1,
        COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', x.ended_at), 0)),
    0, t.account,
    t.made_rev, COALESCE(t.channel_key, ''), t.conflict, t.success_epoch <=> t.epoch, t.lane,
    COALESCE(t.channel, ''), t.has_past,
    t.status = 'P' AND t.lane = 'S' AND t.session_id IS NOT NULL AND NOT t.is_first
        AND EXISTS (SELECT 1 FROM trade_lock_low_water w WHERE w.op_code = t.op_code
            AND w.low_water > t.next_run_at AND w.low_water <= UTC_TIMESTAMP(6)),
    t.status = 'P' AND t.lane = 'S' AND t.repeatable = 0 AND t.session_id IS NULL
        AND NOT t.is_first AND NOT EXISTS (SELECT 1 FROM trade_lock r
            WHERE r.cust_no = t.cust_no AND r.serial_no = t.serial_no
            AND r.op_code = CONCAT(t.op_code, _ascii '_RETRY' COLLATE ascii_nopad_bin)
            AND r.epoch = t.epoch
            AND (r.status = 'P' OR r.parked IS NOT NULL OR r.next_run_at IS NOT NULL)),
    t.is_first, t.repeatable, COALESCE(t.amount_minor, ''), COALESCE(t.currency, '')
FROM steps t
LEFT JOIN tl_session x ON x.session_id = t.session_id
ORDER BY t.cust_no, t.serial_no, t.op_code, t.rev
