-- A page of trade_lock_past, in the order of its key. Before the first kept step of a row's life
-- comes the first step, if the row itself keeps it; behind the last one comes the row as it is now.
-- Each step comes with its account, the end of the session that made it (0: it has not ended), and
-- the row's first revision (NULL: the row is gone); a decision of operators also comes with how
-- many of them made it. One statement sees one moment, so a row and its history agree. A row
-- without steps in trade_lock_past is in audit_rows.sql. The first condition alone would do; the
-- others let the server begin at the right place. Of two NOT EXISTS the second one would do: it
-- walks through the row's steps from the first, so the neighbour by number is looked up before.
WITH page AS (
    SELECT cust_no, serial_no, op_code, rev, step, status, token, fence, epoch, proof,
        session_id, logged_at, max_hold_until, account
    FROM trade_lock_past
    WHERE serial_no >= :serial_no AND (serial_no > :serial_no OR (serial_no = :serial_no
        AND (cust_no > :cust_no
        OR (cust_no = :cust_no AND (op_code > :op_code OR (op_code = :op_code AND rev > :rev))))))
    ORDER BY serial_no, cust_no, op_code, rev
    LIMIT :most),
steps AS (
    SELECT * FROM page
    UNION ALL
    SELECT f.cust_no, f.serial_no, f.op_code, f.rev, f.step, f.status, f.token, f.fence,
        f.epoch, f.proof, f.session_id, f.logged_at, f.max_hold_until, f.account
    FROM page p JOIN trade_lock_first f ON f.cust_no = p.cust_no
        AND f.serial_no = p.serial_no AND f.op_code = p.op_code
    WHERE f.rev IS NOT NULL AND (p.rev = f.rev + 1
        OR (NOT EXISTS (SELECT 1 FROM trade_lock_past n WHERE n.serial_no = p.serial_no
                AND n.cust_no = p.cust_no AND n.op_code = p.op_code
                AND n.rev = IF(p.rev > f.rev, p.rev - 1, p.rev + 1))
            AND NOT EXISTS (SELECT 1 FROM trade_lock_past n WHERE n.serial_no = p.serial_no
                AND n.cust_no = p.cust_no AND n.op_code = p.op_code
                AND IF(p.rev > f.rev, n.rev > f.rev AND n.rev < p.rev, n.rev > p.rev))))
    UNION ALL
    SELECT t.cust_no, t.serial_no, t.op_code, t.rev, t.step, t.status, t.token, t.fence,
        t.epoch, t.proof, t.session_id, t.logged_at, t.max_hold_until, t.account
    FROM page p JOIN trade_lock t ON t.cust_no = p.cust_no AND t.serial_no = p.serial_no
        AND t.op_code = p.op_code
    WHERE NOT EXISTS (SELECT 1 FROM trade_lock_past n WHERE n.serial_no = p.serial_no
        AND n.cust_no = p.cust_no AND n.op_code = p.op_code AND n.rev = p.rev + 1)
    AND NOT EXISTS (SELECT 1 FROM trade_lock_past n WHERE n.serial_no = p.serial_no
        AND n.cust_no = p.cust_no AND n.op_code = p.op_code AND n.rev > p.rev))
SELECT l.cust_no, l.serial_no, l.op_code, l.rev, l.step, l.status, l.token, l.fence, l.epoch,
    l.proof, COALESCE(l.session_id, ''),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.logged_at),
    COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.max_hold_until), 0),
    IF(x.session_id IS NULL, 1,
        COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', x.ended_at), 0)),
    IF(l.step LIKE 'resolve %', (SELECT COUNT(DISTINCT tl_account_name(d.account))
        FROM trade_resolution d WHERE d.cust_no = l.cust_no AND d.serial_no = l.serial_no
            AND d.op_code = l.op_code AND d.rev = l.rev - 1 AND d.part < 3
            AND d.verdict = CASE l.step WHEN 'resolve clear' THEN 'C'
                WHEN 'resolve paid' THEN 'Y' ELSE 'F' END), 0),
    l.account,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.created_at) AS made_rev
FROM steps l
LEFT JOIN trade_lock t ON t.cust_no = l.cust_no AND t.serial_no = l.serial_no
    AND t.op_code = l.op_code
LEFT JOIN tl_session x ON x.session_id = l.session_id
ORDER BY l.serial_no, l.cust_no, l.op_code, l.rev
