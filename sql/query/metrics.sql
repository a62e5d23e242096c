-- Metrics, and the overview of operators.

-- name: metrics_breakers
-- How the breakers of channels stand, for each operation of theirs that is known: for how long it has
-- been open, and how often it has opened.  A breaker of all operations is told with '' too.
SELECT k.channel, k.op_code,
    COALESCE(TIMESTAMPDIFF(MICROSECOND, MIN(b.opened_at), UTC_TIMESTAMP(6)), 0), SUM(b.opened)
FROM trade_channel_breaker b FORCE INDEX (PRIMARY)
STRAIGHT_JOIN trade_channel k FORCE INDEX (PRIMARY)
    ON k.channel = b.channel AND (b.op_code = '' OR k.op_code = b.op_code)
WHERE b.unknowns IS NOT NULL
GROUP BY k.channel, k.op_code

-- name: metrics_conflicts
-- The trades in conflict, by operation, channel and currency: how many, and how much money.  It
-- looks at a certain number at most.
SELECT t.op_code, COALESCE(t.channel, 'unknown'), COALESCE(t.currency, 'unknown'), COUNT(*),
    CAST(COALESCE(SUM(t.amount_minor), 0) AS CHAR)
FROM (SELECT cust_no, serial_no, op_code
    FROM trade_lock FORCE INDEX (serial)
    WHERE conflict = 1
    ORDER BY conflict, parked, serial_no
    LIMIT :most) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
GROUP BY 1, 2, 3

-- name: metrics_due
-- How many retry rows of one operation are due and not claimed, by the channel of their trade, and
-- for how long the oldest has been, in microseconds.  It looks at those that are due longest, a
-- certain number at most.
SELECT COALESCE(s.channel, 'unknown'), COUNT(*), MAX(r.late_us)
FROM (SELECT cust_no, serial_no, status,
        TIMESTAMPDIFF(MICROSECOND, next_run_at, UTC_TIMESTAMP(6)) AS late_us
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :retry_op AND next_run_at > '1970-01-01' AND next_run_at <= UTC_TIMESTAMP(6)
        AND session_id IS NULL
    ORDER BY op_code, next_run_at
    LIMIT :most) r
LEFT JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = r.cust_no
    AND s.serial_no = r.serial_no AND s.op_code = :op_code
WHERE r.status = 'F'
GROUP BY 1

-- name: metrics_overdue
-- How many trades of one operation are held for longer than their max_hold, since no janitor opened
-- them, and for how long the oldest has been, in microseconds.  It looks from the low-water mark to
-- now, and at a certain number of rows at most; of finished ones only those since the mark are among
-- them.
SELECT COUNT(*), COALESCE(MAX(late_us), 0)
FROM (SELECT status, lane, TIMESTAMPDIFF(MICROSECOND, next_run_at, UTC_TIMESTAMP(6)) AS late_us
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code
        AND next_run_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :from_us MICROSECOND
        AND next_run_at <= UTC_TIMESTAMP(6)
    ORDER BY op_code, next_run_at
    LIMIT :most) AS passed
WHERE status = 'P' AND lane = 'S'

-- name: metrics_paused
-- For how long each channel and operation that is known has been paused, in microseconds; 0: it is
-- not.  A channel that is paused as a whole is told with '' and with each of its operations.
SELECT k.channel, k.op_code,
    COALESCE(TIMESTAMPDIFF(MICROSECOND, MIN(p.decided_at), UTC_TIMESTAMP(6)), 0)
FROM trade_channel k FORCE INDEX (PRIMARY)
LEFT JOIN trade_channel p FORCE INDEX (PRIMARY) ON p.channel = k.channel
    AND p.op_code IN ('', k.op_code) AND p.paused = 1
GROUP BY k.channel, k.op_code

-- name: metrics_proposals
-- How many decisions and closings wait for a second person, and for how long the oldest has, in
-- microseconds: of the newest ones, a certain number of each at most.
SELECT COUNT(*), COALESCE(TIMESTAMPDIFF(MICROSECOND, MIN(at), UTC_TIMESTAMP(6)), 0)
FROM (
    (SELECT d.decided_at AS at
    FROM (SELECT cust_no, serial_no, op_code, rev, part, decided_at
        FROM trade_resolution FORCE INDEX (decided)
        WHERE decided_at > '1970-01-01' ORDER BY decided_at DESC LIMIT :most) d
    STRAIGHT_JOIN trade_lock t FORCE INDEX (PRIMARY) ON /*include proposal_stands_condition*/)
    UNION ALL
    (SELECT d.closed_at
    FROM (SELECT finding, part, closed_at
        FROM audit_closing FORCE INDEX (closed)
        WHERE closed_at > '1970-01-01' ORDER BY closed_at DESC LIMIT :most) d
    LEFT JOIN audit_closing c FORCE INDEX (PRIMARY) ON c.finding = d.finding AND c.part = 2
    WHERE d.part = 1 AND c.part IS NULL)) proposed

-- name: metrics_server
-- Whether a restore is open, how many there were, how often the clock was set, and to how many of
-- these jumps the rows are not adjusted yet.
SELECT tl_restored() <> 0, s.restore_no, c.steps, c.steps - c.settled
FROM tl_schema s JOIN tl_clock c ON c.one = s.one
WHERE s.one = 1

-- name: metrics_sessions
-- Sessions that nobody has cleared up, by program and state: alive; silent for longer than their
-- time-out; or ended, and what they held is not all opened yet.
SELECT program, CASE
        WHEN ended_at IS NOT NULL THEN 'ended'
        WHEN alive_until < UTC_TIMESTAMP(6) THEN 'silent'
        ELSE 'alive'
    END AS state, COUNT(*)
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL
GROUP BY 1, 2

-- name: metrics_tables
-- About how large the tables are that grow with every trade: rows and bytes, from the server's
-- statistics.  No row is read.
SELECT table_name, COALESCE(table_rows, 0), COALESCE(data_length + index_length, 0)
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name IN ('trade_lock', 'trade_lock_past',
    'trade_evidence', 'resource_log', 'resource_holder_log')

-- name: metrics_trades
-- The trades of one operation that nobody holds: how many and how much money, by state, channel,
-- currency and age, and how old the oldest is, in seconds.  They stand in the index without a
-- holder and without a next moment of their own; of finished rows only those of repeatable trades
-- do, which have operations of their own (state 'other').  An age is one of five: under a minute,
-- ten minutes, an hour, a day, or more.  It looks at a certain number at most.
SELECT CASE
        WHEN t.status <> 'P' OR t.repeatable = 1 THEN 'other'
        WHEN r.status = 'F' AND r.epoch = t.epoch AND r.parked IS NOT NULL THEN 'parked'
        WHEN t.sends > 0 THEN 'in_doubt'
        ELSE 'queued'
    END AS state,
    /*include metrics_trades_columns*/
FROM (SELECT cust_no, serial_no, op_code
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at IS NULL AND session_id IS NULL
    ORDER BY cust_no, serial_no
    LIMIT :most) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
LEFT JOIN trade_lock r ON r.cust_no = d.cust_no AND r.serial_no = d.serial_no
    AND r.op_code = :retry_op AND r.repeatable = 0
GROUP BY 1, 2, 3, 4

-- name: metrics_trades_columns
-- Trades of one state by channel, currency and age; their money, the oldest, the first deadline in
-- microseconds, and how many are past theirs.
COALESCE(t.channel, 'unknown'), COALESCE(t.currency, 'unknown'),
    (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE)
        + (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 10 MINUTE)
        + (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 1 HOUR)
        + (t.created_at <= UTC_TIMESTAMP(6) - INTERVAL 1 DAY) AS age,
    COUNT(*), CAST(COALESCE(SUM(t.amount_minor), 0) AS CHAR),
    GREATEST(0, MAX(TIMESTAMPDIFF(SECOND, t.created_at, UTC_TIMESTAMP(6)))),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MIN(t.deadline_at)),
    COALESCE(SUM(t.deadline_at <= UTC_TIMESTAMP(6)), 0)

-- name: metrics_working
-- The trades of one operation that a compensating attempt holds now, as metrics_trades tells
-- them.  Their retry rows have a holder and no next moment.
SELECT IF(t.status = 'P', 'working', 'other') AS state,
    /*include metrics_trades_columns*/
FROM (SELECT cust_no, serial_no
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :retry_op AND next_run_at IS NULL
        AND session_id >= '00000000-0000-0000-0000-000000000000'
    ORDER BY session_id, cust_no, serial_no
    LIMIT :most) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = :op_code
GROUP BY 1, 2, 3, 4

-- name: overview_inbox
-- What one operator proposed and nobody confirmed: decisions about trades that are still as their
-- operator saw them, of an act of many in one row, findings of an audit, and customers to be
-- forgotten; oldest first.  It walks through what operators ever decided.
SELECT 'resolve' AS what, d.serial_no, d.cust_no, d.op_code, d.fence,
    CASE d.verdict WHEN 'C' THEN 'clear' WHEN 'Y' THEN 'paid' ELSE 'failed' END AS said,
    d.reason, d.actor, d.account,
    tl_account_name(d.account) <=> tl_account_name(CURRENT_USER()) AS own,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', d.decided_at) AS proposed_us, t.amount_minor,
    t.currency, 0 AS act_no, 1 AS trades
FROM trade_resolution d
STRAIGHT_JOIN trade_lock t ON /*include proposal_stands_condition*/
WHERE d.act_no IS NULL
UNION ALL
SELECT 'resolve', '', '', '', 0,
    CASE d.verdict WHEN 'C' THEN 'clear' WHEN 'Y' THEN 'paid' ELSE 'failed' END, d.reason, d.actor,
    d.account, tl_account_name(d.account) <=> tl_account_name(CURRENT_USER()),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MIN(d.decided_at)), NULL, NULL, d.act_no, COUNT(*)
FROM trade_resolution d
STRAIGHT_JOIN trade_lock t ON /*include proposal_stands_condition*/
WHERE d.act_no IS NOT NULL
GROUP BY d.act_no, d.verdict, d.reason, d.actor, d.account
UNION ALL
SELECT 'audit', d.serial_no, d.cust_no, d.op_code, 0, LOWER(LEFT(HEX(d.finding), 16)), d.reason,
    d.actor, d.account, tl_account_name(d.account) <=> tl_account_name(CURRENT_USER()),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', d.closed_at), NULL, NULL, 0, 0
FROM audit_closing d
LEFT JOIN audit_closing c ON c.finding = d.finding AND c.part = 2
WHERE d.part = 1 AND c.part IS NULL
UNION ALL
SELECT 'forget', '', '', '', 0, d.said, d.reason, d.actor, d.account,
    tl_account_name(d.account) <=> tl_account_name(USER()),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', d.begun_at), NULL, NULL, 0, 0
FROM tl_act d FORCE INDEX (said)
LEFT JOIN tl_act c FORCE INDEX (said) ON c.what = 'forget confirm' AND c.said = d.said
    AND c.act_no > d.act_no AND tl_account_name(c.account) <> tl_account_name(d.account)
WHERE d.what = 'forget propose' AND d.begun_at > UTC_TIMESTAMP(6) - INTERVAL 7 DAY
    AND c.act_no IS NULL
ORDER BY proposed_us LIMIT 1000

-- name: overview_sessions
-- Sessions that nobody has cleared up, oldest first: who it is, since when, how long its last beat
-- is ago, whether it was ended, what time it is, whether the session has said that it obeys the
-- drain that is on record (drain_obeyed), and which decisions about channels its program obeys.
SELECT session_id, program, pid, host, COALESCE(operations, '') AS operations,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', started_at) AS started_us,
    GREATEST(0, TIMESTAMPDIFF(MICROSECOND,
        alive_until - INTERVAL timeout_ms * 1000 MICROSECOND, UTC_TIMESTAMP(6))) AS silent_us,
    timeout_ms, ended_at IS NOT NULL AS is_ended,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now_us,
    COALESCE(obeys_us = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', d.decided_at), 0) AS obeys_drain,
    obeys
FROM tl_session FORCE INDEX (to_sweep)
LEFT JOIN trade_channel d FORCE INDEX (PRIMARY)
    ON d.channel = '*' AND d.op_code = '' AND d.paused = 1
WHERE swept_at IS NULL
ORDER BY started_at, session_id LIMIT 1000
