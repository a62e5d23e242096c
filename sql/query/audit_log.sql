-- A page of the history in the order of its key, each step beside the row as it is now and
-- the end of the session that made it (0: it has not ended); of a decision of operators, by
-- how many of them it was made; and when the row was made, which is its first revision
-- (0: it is gone).  One statement sees one moment, so the last step of a row
-- that this page has agrees with the row beside it.
-- The first condition alone would do; the others let the server begin at the place.
SELECT l.cust_no, l.serial_no, l.op_code, l.rev, l.step, l.status, l.token, l.fence, l.epoch,
    l.proof, COALESCE(l.session_id, ''),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.logged_at),
    COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.max_hold_until), 0),
    IF(x.session_id IS NULL, 1,
        COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', x.ended_at), 0)),
    t.rev,
    IF(l.step LIKE 'resolve %', (SELECT COUNT(DISTINCT tl_account_name(d.account))
        FROM trade_resolution d WHERE d.cust_no = l.cust_no AND d.serial_no = l.serial_no
            AND d.op_code = l.op_code AND d.rev = l.rev - 1
            AND d.verdict = CASE l.step WHEN 'resolve clear' THEN 'C'
                WHEN 'resolve paid' THEN 'Y' ELSE 'F' END), 0),
    COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.created_at), 0)
FROM trade_lock_log l
LEFT JOIN trade_lock t ON t.cust_no = l.cust_no AND t.serial_no = l.serial_no
    AND t.op_code = l.op_code
LEFT JOIN tl_session x ON x.session_id = l.session_id
WHERE l.serial_no >= ? AND (l.serial_no > ? OR (l.serial_no = ? AND (l.cust_no > ?
    OR (l.cust_no = ? AND (l.op_code > ? OR (l.op_code = ? AND l.rev > ?))))))
ORDER BY l.serial_no, l.cust_no, l.op_code, l.rev
LIMIT ?
