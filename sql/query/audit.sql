-- What an audit reads.

-- name: audit_close
-- Appends one half of closing a finding.  The server tells who wrote it, and a trigger refuses a
-- second half by the writer of the first.
INSERT INTO audit_closing (finding, part, rule, cust_no, serial_no, op_code, rev, reason,
    actor, thread_no)
VALUES (:finding, :part, :rule, :cust_no, :serial_no, :op_code, :rev, :reason, :actor, :thread_no)

-- name: audit_closing
-- Who proposed to close a finding, and who confirmed it, if anybody did; whether these are two
-- persons, and whether it was the account that asks now.
SELECT p.account AS proposed_by, p.reason AS proposed_reason,
    tl_account_name(p.account) <=> tl_account_name(CURRENT_USER()) AS proposed_own,
    c.account AS closed_by, c.reason AS closed_reason,
    tl_account_name(c.account) <=> tl_account_name(CURRENT_USER()) AS closed_own,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', c.closed_at) AS closed_us,
    COALESCE(tl_account_name(p.account) <> tl_account_name(c.account), 0) AS closed
FROM audit_closing p
LEFT JOIN audit_closing c ON c.finding = p.finding AND c.part = 2
WHERE p.finding = :finding AND p.part = 1

-- name: audit_log
-- A page of trade_lock_past, in the order of its key. Before the first kept step of a row's life
-- comes the first step, if the row itself keeps it; behind the last one comes the row as it is now.
-- Each step comes with its account, the end of the session that made it (0: it has not ended), and
-- the row's first revision (NULL: the row is gone); a decision of operators also comes with how
-- many of them made it. One statement sees one moment, so a row and its history agree. A row
-- without steps in trade_lock_past is in audit_rows. The first condition alone would do; the
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

-- name: audit_rows
-- A page of the rows in the order of their key. Each row is given as a step, in the columns of
-- audit_log. Then come what a channel's statement is compared with; whether trade_lock_past has
-- steps of it (then audit_log has all its history); whether it is in process before the
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

-- name: audit_noted
-- Of the newest audits on record the last one with a statement, and the last one without: when it
-- ended, by which account, the statement's name, which stands last in what was said, and what it
-- came to.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', ended_at) AS at_us, account, statement,
    CAST(SUBSTRING_INDEX(REGEXP_SUBSTR(counts, 'rows=[0-9]+'), '=', -1) AS UNSIGNED) AS rows_read,
    CAST(SUBSTRING_INDEX(REGEXP_SUBSTR(counts, 'payments=[0-9]+'), '=', -1) AS UNSIGNED) AS payments,
    CAST(SUBSTRING_INDEX(REGEXP_SUBSTR(counts, 'violations=[0-9]+'), '=', -1) AS UNSIGNED) AS violations,
    CAST(CONCAT('0', SUBSTRING_INDEX(REGEXP_SUBSTR(counts, 'differences=[0-9]+'), '=', -1))
        AS UNSIGNED) AS differences
FROM (SELECT a.*, ROW_NUMBER() OVER (PARTITION BY statement = '' ORDER BY ended_at DESC, act_no DESC)
        AS place
    FROM (SELECT act_no, ended_at, account, counts, IF(LOCATE('--statement ', said) = 0, '',
                SUBSTRING(said, LOCATE('--statement ', said) + 12)) AS statement
            FROM tl_act FORCE INDEX (what)
            WHERE what = 'audit' AND counts IS NOT NULL
            ORDER BY what DESC, begun_at DESC LIMIT :most) a) b
WHERE place = 1

-- name: audit_run
-- The head of an audit: who audits, which server, and when.
SELECT CURRENT_USER(), CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))

-- name: audit_waits
-- Whether success of a trade that is not here was filed, and waits for a restore to be accepted, which
-- makes it.
SELECT tl_restored() AND COUNT(*) > 0 FROM trade_evidence_lost
WHERE cust_no = :cust_no AND serial_no = :serial_no
    AND (:op_code = '' OR op_code = :op_code)
