-- Channels: pauses, limits, circuit breakers, contracts.

-- name: channel_breaker
-- An operator gives a channel a breaker, or takes it away; the procedure checks what is there
-- (sql/object/channel.sql).
CALL tl_channel_breaker(:channel, :op_code, :unknowns, :share, :window_s, :probe_s, :log_no, :actor,
    :reason)

-- name: channel_called
-- What this connection's last call about a share, a breaker, a contract or the site came to.
SELECT @tl_called

-- name: channel_decide
-- An operator pauses a channel, or has it go on; the procedure checks what is there
-- (sql/object/channel.sql).
CALL tl_channel_decide(:channel, :op_code, :paused, :log_no, :actor, :reason)

-- name: channel_declare
-- A session declares what its program promises of a channel; the procedure commits by itself
-- (sql/object/contract.sql).  It waits for others that declare: services start together.
SET STATEMENT innodb_lock_wait_timeout = 5 FOR
CALL tl_channel_declare(:channel, :op_code, :session_id, :was, :contract, :more, @tl_called)

-- name: channel_ended
-- What became of one operation's trades in the last minutes, by channel and minute: how many
-- succeeded, were declined by the channel and failed with another proof; and when the channel's
-- word last ended one, in microseconds.  What evidence told of the row's epoch or against its end,
-- what a service declared and what operators decided is not the channel's answer.  A trade ends
-- before its hold would have, and keeps the end of its hold (next_run_at).  So what ended in these
-- minutes stands behind their begin in the index.  If the limit cuts rows off, all that ended after
-- the earliest next_run_at that was read is counted.  Minutes are counted since 1970.  Those that
-- had no end a minute after they were asked for are counted by that minute, too.
SELECT TIMESTAMPDIFF(MINUTE, '1970-01-01', UTC_TIMESTAMP()) AS this_minute,
    TIMESTAMPDIFF(MINUTE, '1970-01-01', updated_at) AS minute,
    COALESCE(channel, 'unknown') AS channel,
    SUM(is_trade AND status = 'Y') AS succeeded,
    SUM(is_trade AND status = 'F' AND proof = 'D') AS declined,
    SUM(is_trade AND status = 'F' AND proof <> 'D') AS failed,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MAX(IF(is_trade AND conflict = 0
        AND (status = 'Y' AND NOT success_epoch <=> epoch
            OR status = 'F' AND proof IN ('D', 'N', 'C')), updated_at, NULL))) AS answered_us,
    COUNT(*) AS looked_at,
    MIN(TIMESTAMPDIFF(MINUTE, '1970-01-01', next_run_at)) AS earliest,
    IF(is_trade AND status <> 'P' AND updated_at >= created_at + INTERVAL 1 MINUTE,
        TIMESTAMPDIFF(MINUTE, '1970-01-01', created_at), NULL) AS late_minute,
    SUM(is_trade) AS trades
FROM (SELECT created_at, updated_at, status, proof, conflict, channel, epoch, success_epoch, next_run_at,
        lane = 'S' AND repeatable = 0 AS is_trade
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at >= UTC_TIMESTAMP(6) - INTERVAL :minutes MINUTE
    ORDER BY op_code DESC, next_run_at DESC, session_id DESC
    LIMIT :most) newest
GROUP BY minute, channel, late_minute

-- name: channel_gates
-- What operators set, a row for each pause, limit and breaker; op_code '' is all operations together.
-- A channel that is paused as a whole is told with '' and with each of its operations that is known.
-- Of a limit, a number that is NULL is none.  Of a breaker, again_ms: in how many milliseconds a
-- probe may begin; negative: it might have for so long.  A moment that is further away than anybody
-- sets was set by another clock, and counts as one of the past: whoever then tries has it set right
-- (sql/object/channel.sql).
SELECT k.channel, k.op_code, p.reason, p.account,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', p.decided_at) AS paused_us,
    TIMESTAMPDIFF(MICROSECOND, p.decided_at, UTC_TIMESTAMP(6)) AS paused_for_us,
    NULL AS sends, NULL AS per_second, NULL AS unknowns, NULL AS share, NULL AS probe_s, NULL AS era,
    NULL AS is_open, NULL AS in_a_row, NULL AS again_ms
FROM trade_channel p FORCE INDEX (paused)
STRAIGHT_JOIN trade_channel k FORCE INDEX (PRIMARY)
    ON k.channel = p.channel AND (p.op_code = '' OR k.op_code = p.op_code)
WHERE p.paused = 1
UNION ALL
SELECT channel, op_code, NULL, NULL, NULL, NULL, sends, per_second, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL
FROM trade_channel_limit FORCE INDEX (PRIMARY)
WHERE sends IS NOT NULL OR per_second IS NOT NULL
UNION ALL
SELECT channel, op_code, NULL, NULL, NULL, NULL, NULL, NULL, unknowns, share, probe_s, era,
    opened_at IS NOT NULL, in_a_row,
    COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), next_at)
        * IF(next_at > UTC_TIMESTAMP(6)
            + INTERVAL GREATEST(probe_s * 1000, hold_ms) * 1000 MICROSECOND, -1, 1), 0) DIV 1000
FROM trade_channel_breaker FORCE INDEX (PRIMARY)
WHERE unknowns IS NOT NULL

-- name: channel_known
-- Makes a channel and its operation known, so that operators can pause it.  A row that is there
-- stays as it is: nothing else is named.
INSERT IGNORE INTO trade_channel (channel, op_code) VALUES (:channel, :op_code)

-- name: channel_limit
-- An operator limits a channel, or lifts the limit; the procedure checks what is there
-- (sql/object/channel.sql).
CALL tl_channel_limit(:channel, :op_code, :sends, :per_second, :log_no, :actor, :reason)

-- name: channel_list
-- All channels and operations that are known, or those of one channel, and what was decided about
-- each.  Last, of a breaker that is open: how many probes had no answer, when the last one began,
-- whether that goes on, and when the next one may begin.  A moment that is further away than
-- anybody sets was set by another clock, as channel_gates says.
SELECT c.channel, c.op_code, c.paused,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', c.decided_at) AS decided_us, c.reason, c.actor,
    c.account, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now_us,
    tl_account_name(c.account) <=> tl_account_name(CURRENT_USER()) AS own, l.sends, l.per_second,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.decided_at) AS limited_us,
    l.reason AS limit_reason, l.actor AS limit_actor, l.account AS limit_account,
    tl_account_name(l.account) <=> tl_account_name(CURRENT_USER()) AS limit_own,
    b.unknowns, b.share, b.window_s, b.probe_s,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', b.opened_at) AS opened_us, b.opened,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', b.decided_at) AS breaker_us,
    b.reason AS breaker_reason, b.actor AS breaker_actor, b.account AS breaker_account,
    tl_account_name(b.account) <=> tl_account_name(CURRENT_USER()) AS breaker_own,
    IF(b.opened_at IS NULL, 0, b.in_a_row) AS silent_probes,
    IF(b.window_at >= b.opened_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', b.window_at), NULL)
        AS probed_us,
    COALESCE(b.window_at >= b.opened_at AND b.window_sends > 0 AND b.next_at > UTC_TIMESTAMP(6), 0)
        AS probes,
    IF(b.opened_at IS NULL OR b.next_at > UTC_TIMESTAMP(6)
            + INTERVAL GREATEST(b.probe_s * 1000, b.hold_ms) * 1000 MICROSECOND,
        NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', b.next_at)) AS probe_us
FROM trade_channel c FORCE INDEX (PRIMARY)
LEFT JOIN trade_channel_limit l FORCE INDEX (PRIMARY)
    ON l.channel = c.channel AND l.op_code = c.op_code
LEFT JOIN trade_channel_breaker b FORCE INDEX (PRIMARY)
    ON b.channel = c.channel AND b.op_code = c.op_code
WHERE c.channel >= :from_channel AND c.channel <= :to_channel
ORDER BY c.channel, c.op_code

-- name: channel_permits
-- How many permits of limited channels each session has.  All are walked: a process has one row for
-- each limit at most.
SELECT session_id, SUM(permits)
FROM trade_channel_permit FORCE INDEX (PRIMARY)
GROUP BY session_id

-- name: channel_probe
-- A process would probe an open breaker; the procedure commits by itself (sql/object/channel.sql).
CALL tl_channel_probe(:channel, :op_code, :probe, :hold_ms, :latest_us, @tl_called)

-- name: channel_registered
-- All channels that were registered for an operation: the contract, and how many sessions that live
-- have registered it.
SELECT c.channel, c.op_code, c.contract, COUNT(s.session_id)
FROM trade_channel c FORCE INDEX (PRIMARY)
LEFT JOIN tl_session_channel r FORCE INDEX (PRIMARY)
    ON r.channel = c.channel AND r.op_code = c.op_code
LEFT JOIN tl_session s FORCE INDEX (PRIMARY)
    ON s.session_id = r.session_id AND s.ended_at IS NULL
WHERE c.contract IS NOT NULL
GROUP BY c.channel, c.op_code
ORDER BY c.channel, c.op_code

-- name: channel_share
-- A process takes its share of a limited channel; the procedure commits by itself
-- (sql/object/channel.sql).
CALL tl_channel_share(:channel, :op_code, :session_id, :used, :wanted, :hold_ms, :claims, :latest_us,
    @tl_called)

-- name: channel_told
-- A process tells what it counted of a channel with a breaker, or what its probe came to; the
-- procedure commits by itself (sql/object/channel.sql).
CALL tl_channel_told(:channel, :op_code, :era, :probe, :answered, :tail, :unknowns, :sends,
    @tl_called)

-- name: channel_use
-- The limits, and how much of each is used: how many permits processes have, and how many they could use when
-- they last asked; those among them of processes that ended, and when the first of these is free,
-- in microseconds; for how long a send of any is at most under way; and when the next send of a
-- limit a second may begin.  It counts the permits that tl_channel_share() counts, and as there a
-- next moment that is further away than anybody gives away was told by another clock.
SELECT l.channel, l.op_code, l.sends, l.per_second, COALESCE(SUM(p.permits), 0) AS permits,
    COALESCE(SUM(IF(s.ended_at IS NULL, p.wanted, 0)), 0) AS wanted,
    COALESCE(SUM(IF(s.ended_at IS NULL, 0, p.permits)), 0) AS permits_ended,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MIN(IF(p.permits > 0,
        s.ended_at + INTERVAL p.hold_ms * 1000 MICROSECOND, NULL))) AS ended_free_us,
    COALESCE(MAX(p.hold_ms), 0) AS longest_hold_ms,
    IF(l.per_second IS NOT NULL AND l.next_at BETWEEN UTC_TIMESTAMP(6)
            AND UTC_TIMESTAMP(6) + INTERVAL 2 SECOND,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', l.next_at), NULL) AS next_us
FROM trade_channel_limit l FORCE INDEX (PRIMARY)
LEFT JOIN (trade_channel_permit p FORCE INDEX (PRIMARY)
    STRAIGHT_JOIN tl_session s FORCE INDEX (PRIMARY) ON s.session_id = p.session_id
        AND (s.ended_at IS NULL
            OR s.ended_at + INTERVAL p.hold_ms * 1000 MICROSECOND >= UTC_TIMESTAMP(6)))
    ON p.channel = l.channel AND p.op_code = l.op_code AND l.sends IS NOT NULL
WHERE l.sends IS NOT NULL OR l.per_second IS NOT NULL
GROUP BY l.channel, l.op_code
ORDER BY l.channel, l.op_code

-- name: channel_waiting
-- A trade of this channel that waits, and that nobody holds.
SELECT serial_no, cust_no
FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND next_run_at IS NULL AND session_id IS NULL
    AND lane = 'S' AND status = 'P' AND channel = :channel
ORDER BY op_code, next_run_at, session_id
LIMIT 1

-- name: channel_waits
-- What waits for each channel of one operation, of the trades that nobody holds: how many trades;
-- of their last attempts, how many were answered and how many got no answer, when the last of each
-- was, and since when there was none, in microseconds; and how many rows were looked at, which are
-- a certain number at most.  A send that found no connection got no answer; one whose time was over
-- asked nobody.  A trade of which the channel never said anything had no answer since it was made,
-- any other since its last attempt.  An attempt of before the last minutes, as that of a parked
-- trade, says nothing of how the channel is now.  Last, in which minute they were asked for, since
-- 1970, of those of the last three hours.
SELECT COALESCE(t.channel, 'unknown') AS channel, SUM(t.waits), SUM(t.silent = 0),
    SUM(t.silent = 1), MAX(IF(t.silent = 0, t.at_us, NULL)),
    MAX(IF(t.silent = 1 AND t.is_new, t.at_us, NULL)),
    MIN(IF(t.silent = 1 AND t.is_new, t.since_us, NULL)), COUNT(*),
    IF(t.created_at > UTC_TIMESTAMP(6) - INTERVAL 180 MINUTE,
        TIMESTAMPDIFF(MINUTE, '1970-01-01', t.created_at), NULL) AS asked_minute,
    TIMESTAMPDIFF(MINUTE, '1970-01-01', UTC_TIMESTAMP()) AS this_minute
FROM (SELECT t.channel, t.created_at, t.status = 'P' AND t.repeatable = 0 AS waits,
        IF(t.status = 'P' AND t.repeatable = 0 AND (t.remark LIKE _utf8mb4 'asked: %'
            OR t.step = 'not sent' AND t.remark NOT LIKE _utf8mb4 'not sent: %'),
            t.step = 'not sent' OR t.remark LIKE _utf8mb4 'asked: no answer%', NULL) AS silent,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.updated_at) AS at_us,
        t.updated_at >= UTC_TIMESTAMP(6) - INTERVAL :minutes MINUTE AS is_new,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01',
            IF(t.seen_by_channel = 0 AND t.not_found_since IS NULL, t.created_at, t.updated_at))
            AS since_us
    FROM (SELECT cust_no, serial_no, op_code
        FROM trade_lock FORCE INDEX (due)
        WHERE op_code = :op_code AND next_run_at IS NULL AND session_id IS NULL
        ORDER BY cust_no, serial_no
        LIMIT :most) d
    STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
        AND t.op_code = d.op_code) t
GROUP BY channel, asked_minute

-- name: drain_obeyed
-- A session says that nothing begins in its process any more because of the drain that was decided
-- at this moment.
UPDATE tl_session SET obeys_us = :since_us WHERE session_id = :session_id AND ended_at IS NULL
