-- Every committed step of both rows of a trade, oldest first.  If one transaction wrote both, the
-- sync row comes first.  And which program a step's holder was, while its session is kept.
SELECT op_code, step, status, rev, fence, epoch, attempts, claims, sends, conflict, proof,
    thread_no, log_no, l.session_id, parked, channel_key, channel_ref, remark, actor, account,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', logged_at) AS logged_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', send_until) AS send_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', max_hold_until) AS max_hold_until_us,
    IF(status = 'P' OR RIGHT(op_code, 6) = _ascii '_RETRY',
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_run_at), NULL) AS next_run_us,
    CONCAT(x.program, ' ', x.pid, '@', x.host) AS holder
FROM trade_lock_log l
LEFT JOIN tl_session x ON x.session_id = l.session_id
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code IN (:op_code, :retry_op)
ORDER BY logged_at, op_code, rev
