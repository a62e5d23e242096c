-- Acts of operators, and accounts.

-- name: account_made
-- How the server tells that it is this account; every account may ask for its own.
SHOW CREATE USER

-- name: account_name
-- Who is connected, as decisions and history name the account, and in which database.
SELECT CURRENT_USER(), DATABASE()

-- name: act_begin
-- Begins an act of an operator; the procedure says under whose name.
CALL tl_act_begin(:what, :said, :reason, :actor, :log_no, :planned, @tl_act)

-- name: act_begun
-- The number of the act that this connection began last.
SELECT @tl_act

-- name: act_end
-- Ends an act; a second time it does nothing.
CALL tl_act_end(:act_no, :counts)

-- name: act_note
-- Notes an act within the transaction that does it; cust_no NULL: it is about no trade.
CALL tl_act_note(:what, :said, :reason, :actor, :log_no, :cust_no, :serial_no, :op_code, :fence,
    :result)

-- name: act_row
-- Writes what became of a row of an act, in the transaction that did it; a second time it does
-- nothing.
CALL tl_act_row(:act_no, :row_no, :cust_no, :serial_no, :op_code, :fence, :result, :done)

-- name: act_proposals
-- What an act of many trades proposed, behind a row of it, in its order: whether the trade is still
-- as it was seen, whether the proposal was confirmed, and the trade's money.
SELECT n.row_no, d.serial_no, d.cust_no, d.op_code, d.fence, d.verdict AS decision, d.reason,
    d.account, tl_account_name(d.account) <=> tl_account_name(CURRENT_USER()) AS own,
    t.rev <=> d.rev AS stands, c.rev IS NOT NULL AS confirmed,
    COALESCE(t.amount_minor, 0) AS amount_minor, COALESCE(t.currency, '') AS currency
FROM tl_act_row n
STRAIGHT_JOIN trade_resolution d ON d.cust_no = n.cust_no AND d.serial_no = n.serial_no
    AND d.op_code = n.op_code AND d.act_no = n.act_no AND d.act_row = n.row_no
LEFT JOIN trade_lock t ON t.cust_no = n.cust_no AND t.serial_no = n.serial_no
    AND t.op_code = n.op_code
LEFT JOIN trade_resolution c ON c.cust_no = d.cust_no AND c.serial_no = d.serial_no
    AND c.op_code = d.op_code AND c.rev = d.rev AND c.verdict = d.verdict AND c.part = 2
WHERE n.act_no = :act_no AND n.row_no > :after_row AND d.part = 1
ORDER BY n.row_no
LIMIT :most

-- name: act_row_seen
-- What became of a row of an act; no row: the transaction that was to do it was not committed.
SELECT result FROM tl_act_row WHERE act_no = :act_no AND row_no = :row_no

-- name: act_rows
-- The rows of an act, in their order.
SELECT row_no, cust_no, serial_no, op_code, fence, result,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', acted_at) AS acted_us
FROM tl_act_row
WHERE act_no = :act_no AND row_no > :after_row
ORDER BY row_no
LIMIT :most

-- name: acts
-- A page of what operators did, the latest first, from every table that tells it.  Each table is
-- read by its index of moments, at most a page of it.  `tie` orders what happened at one moment as
-- the index does; a page goes on behind (moment, table, tie).  `passes`: it is by that person.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at) AS begun_us, origin, tie,
    :person = '' OR CAST(tl_account_name(account) AS BINARY) <=> CAST(:person AS BINARY) AS passes,
    what, said, cust_no, serial_no, op_code, fence, reason, actor, account, act_no, planned, done,
    skipped, counts, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', ended_at) AS ended_us
FROM (
    (SELECT a.begun_at AS at, 'a' AS origin, LPAD(a.act_no, 20, '0') AS tie, a.what, a.said,
        r.cust_no, r.serial_no, r.op_code, r.fence, a.reason, a.actor, a.account, a.act_no,
        a.planned, a.done, a.skipped, a.counts, a.ended_at
    FROM tl_act a FORCE INDEX (begun)
    LEFT JOIN tl_act_row r ON r.act_no = a.act_no AND r.row_no = 1 AND a.planned = 1
    WHERE a.begun_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :since_us MICROSECOND
        AND a.begun_at <= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
        AND (a.begun_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
            OR :after_origin < 'a'
            OR (:after_origin = 'a' AND LPAD(a.act_no, 20, '0') < :after_tie))
    ORDER BY a.begun_at DESC, a.act_no DESC LIMIT :most)
    UNION ALL
    (SELECT closed_at, 'c', CONCAT(LOWER(HEX(finding)), part),
        IF(part = 1, 'audit close propose', 'audit close confirm'), LOWER(LEFT(HEX(finding), 16)),
        cust_no, serial_no, op_code, NULL, reason, actor, account, NULL, 0, 0, 0, NULL, closed_at
    FROM audit_closing FORCE INDEX (closed)
    WHERE closed_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :since_us MICROSECOND
        AND closed_at <= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
        AND (closed_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
            OR :after_origin < 'c'
            OR (:after_origin = 'c' AND CONCAT(LOWER(HEX(finding)), part) < :after_tie))
    ORDER BY closed_at DESC, finding DESC, part DESC LIMIT :most)
    UNION ALL
    (SELECT decided_at, 'd',
        CONCAT(CAST(cust_no AS BINARY), ' ', CAST(serial_no AS BINARY), ' ',
            CAST(op_code AS BINARY), ' ', LPAD(rev, 20, '0'), CAST(verdict AS BINARY), part),
        CASE part WHEN 1 THEN 'resolve propose' WHEN 2 THEN 'resolve confirm'
            ELSE 'resolve refused' END,
        CASE CAST(verdict AS CHAR) WHEN 'C' THEN '--as clear' WHEN 'Y' THEN '--as paid'
            ELSE '--as failed' END,
        cust_no, serial_no, op_code, fence, reason, actor, account, NULL, 0, 0, 0, NULL, decided_at
    FROM trade_resolution FORCE INDEX (alone)
    WHERE act_no IS NULL
        AND decided_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :since_us MICROSECOND
        AND decided_at <= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
        AND (decided_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
            OR :after_origin < 'd'
            OR (:after_origin = 'd'
                AND CONCAT(CAST(cust_no AS BINARY), ' ', CAST(serial_no AS BINARY), ' ',
                    CAST(op_code AS BINARY), ' ', LPAD(rev, 20, '0'), CAST(verdict AS BINARY),
                    part) < :after_tie))
    ORDER BY decided_at DESC, cust_no DESC, serial_no DESC, op_code DESC, rev DESC, verdict DESC,
        part DESC
    LIMIT :most)
    UNION ALL
    (SELECT decided_at, 'r', CONCAT(LPAD(restore_no, 20, '0'), CAST(step AS BINARY)),
        CASE step WHEN 'declared' THEN 'restore declare' WHEN 'found' THEN 'restore found'
            WHEN 'promoted' THEN 'promote' WHEN 'fenced' THEN 'promote fenced' WHEN 'proved' THEN 'restore proved'
            WHEN 'proposed' THEN 'restore accept propose' ELSE 'restore accept confirm' END,
        '', NULL, NULL, NULL, NULL, reason, COALESCE(actor, ''), account, NULL, 0, 0, 0,
        CONCAT('in_doubt=', doubtful), decided_at
    FROM tl_restore FORCE INDEX (decided)
    WHERE decided_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :since_us MICROSECOND
        AND decided_at <= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
        AND (decided_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :after_us MICROSECOND
            OR :after_origin < 'r'
            OR (:after_origin = 'r'
                AND CONCAT(LPAD(restore_no, 20, '0'), CAST(step AS BINARY)) < :after_tie))
        AND step <> 'kept'
    ORDER BY decided_at DESC, restore_no DESC, step DESC LIMIT :most)
) acts
ORDER BY at DESC, origin, tie DESC
LIMIT :most
