-- The kept steps of the trades that a page of a purge named, both lanes, for an archive, as
-- archive_trade_lock.sql.  Behind them: when the session of the step ended, and how many operators
-- made it.
SELECT t.cust_no, t.serial_no, t.op_code, t.rev, t.logged_at, t.step, t.status, t.thread_no,
    t.log_no, t.session_id, LOWER(HEX(t.token)), t.fence, t.epoch, t.attempts, t.claims,
    t.sends, t.send_until, t.max_hold_until, t.next_run_at, t.parked, t.conflict, t.proof,
    t.channel_key, t.channel_ref, t.remark, t.actor, t.account, t.longest_hold_ms,
    IF(t.session_id IS NULL, 0, IF(x.session_id IS NULL, 1,
        COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', x.ended_at), 0))),
    COALESCE(d.operators, 0)
FROM JSON_TABLE(:named, '$[*]' COLUMNS (
    /*include named_columns*/)) n
STRAIGHT_JOIN trade_lock_past t ON t.cust_no = n.cust_no AND t.serial_no = n.serial_no
    AND t.op_code IN (n.op_code, CONCAT(n.op_code, _ascii '_RETRY'))
LEFT JOIN tl_session x ON x.session_id = t.session_id
LEFT JOIN (
    SELECT v.cust_no, v.serial_no, v.op_code, v.rev, v.verdict,
        COUNT(DISTINCT tl_account_name(v.account)) AS operators
    FROM JSON_TABLE(:named, '$[*]' COLUMNS (
        /*include named_columns*/)) m
    STRAIGHT_JOIN trade_resolution v ON v.cust_no = m.cust_no AND v.serial_no = m.serial_no
        AND v.op_code = m.op_code AND v.part < 3
    GROUP BY v.cust_no, v.serial_no, v.op_code, v.rev, v.verdict) d
    ON d.cust_no = t.cust_no AND d.serial_no = t.serial_no AND d.op_code = t.op_code
    AND d.rev + 1 = t.rev AND d.verdict = CASE t.step WHEN 'resolve clear' THEN 'C'
        WHEN 'resolve paid' THEN 'Y' WHEN 'resolve failed' THEN 'F' END
ORDER BY t.cust_no, t.serial_no, t.op_code, t.rev
