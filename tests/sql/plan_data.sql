-- Rows for the test of plans: finished trades and some of every other kind.
-- @rows is set by the test.  One transaction for all, so that it costs one commit.
SET SESSION sql_mode = 'STRICT_ALL_TABLES', time_zone = '+00:00',
    tx_isolation = 'READ-COMMITTED';
CREATE FUNCTION tl_customer_slot(cust VARCHAR(32) CHARACTER SET ascii)
RETURNS SMALLINT UNSIGNED DETERMINISTIC NO SQL RETURN CRC32(cust) % 1024;
START TRANSACTION;
-- As of a shard that is joining.
INSERT INTO tl_slot (slot, state) SELECT seq, 'owned' FROM seq_0_to_511;
SET @now = UTC_TIMESTAMP(6);
SET @alive = 'a0000000-0000-4000-8000-000000000001';
SET @dead = 'd0000000-0000-4000-8000-000000000001';
INSERT INTO tl_session (session_id, program, host, pid, connection_name, timeout_ms,
    started_at, alive_until, ended_at, swept_at)
SELECT CONCAT('b0000000-0000-4000-8000-', LPAD(seq, 12, '0')), 'old', 'host', seq, UUID(),
    10000, @now, @now, @now, @now FROM seq_1_to_2000
UNION ALL
SELECT CONCAT('a0000000-0000-4000-8000-', LPAD(seq, 12, '0')), 'live', 'host', seq, UUID(),
    3600000, @now, @now + INTERVAL 1 HOUR, NULL, NULL FROM seq_1_to_20
UNION ALL
SELECT CONCAT('c0000000-0000-4000-8000-', LPAD(seq, 12, '0')), 'silent', 'host', seq,
    UUID(), 10000, @now - INTERVAL 1 HOUR, @now - INTERVAL 1 HOUR, NULL, NULL
    FROM seq_1_to_3
UNION ALL
SELECT CONCAT('d0000000-0000-4000-8000-', LPAD(seq, 12, '0')), 'dead', 'host', seq, UUID(),
    10000, @now, @now, @now, NULL FROM seq_1_to_5
UNION ALL
SELECT CONCAT('f0000000-0000-4000-8000-', LPAD(seq, 12, '0')), 'past', 'host', seq, UUID(),
    10000, @now - INTERVAL 9 DAY, @now - INTERVAL 9 DAY, @now - INTERVAL 9 DAY,
    @now - INTERVAL 9 DAY FROM seq_1_to_100;

-- Channels: 1,000 that are open, of which ten are paused for one operation, and one as a whole.
INSERT INTO trade_channel (channel, op_code)
SELECT CONCAT('bank-', LPAD(seq, 4, '0')), 'WITHDRAW' FROM seq_1_to_1000;
UPDATE trade_channel SET contract = 'idempotent=1' WHERE channel = 'bank-0001';
UPDATE trade_channel SET paused = 1, decided_at = @now, reason = 'r', actor = 'a', account = 'a@h'
WHERE channel <= 'bank-0010';
INSERT INTO trade_channel (channel, op_code, paused, decided_at, reason, actor, account)
VALUES ('bank-0500', '', 1, @now, 'r', 'a', 'a@h');
INSERT INTO trade_channel_limit
    (channel, op_code, sends, per_second, decided_at, reason, actor, account)
SELECT CONCAT('bank-', LPAD(seq, 4, '0')), 'WITHDRAW', 1000, 1000, @now, 'r', 'a', 'a@h'
FROM seq_1_to_20;
INSERT INTO trade_channel_breaker
    (channel, op_code, unknowns, opened_at, decided_at, reason, actor, account)
SELECT CONCAT('bank-', LPAD(seq, 4, '0')), 'WITHDRAW', 5, IF(seq = 2, @now, NULL), @now, 'r', 'a',
    'a@h'
FROM seq_1_to_20;
INSERT INTO trade_channel_permit (channel, op_code, session_id, permits, wanted, hold_ms)
SELECT CONCAT('bank-', LPAD(b.seq, 4, '0')), 'WITHDRAW',
    CONCAT('f0000000-0000-4000-8000-', LPAD(s.seq, 12, '0')), 1, 1, 1000
FROM seq_1_to_20 b JOIN seq_1_to_100 s;

-- Finished: W1 ..., ten of each customer, all before the low-water mark.
INSERT INTO trade_lock_low_water VALUES ('WITHDRAW', '2021-01-01');
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    session_id, fence, rev, sends, next_run_at, first_rev, first_token, created_at,
    updated_at, batch, channel_ref, label, traceparent, amount_minor, currency)
SELECT CONCAT('C', seq MOD (@rows DIV 10)), CONCAT('W', seq), 'WITHDRAW', 'S', 'Y', 'seed', UUID(),
    UNHEX(MD5(seq)), CONCAT('b0000000-0000-4000-8000-', LPAD(1 + seq MOD 2000, 12, '0')),
    1000, 1000, 1, '2020-01-01' + INTERVAL seq SECOND, IF(seq MOD 2 = 0, 999, NULL),
    UNHEX(MD5(-seq)), @now, @now,
    IF(seq MOD 2 = 0, CONCAT('B', seq MOD 10 + 1), NULL),
    IF(seq MOD 10 = 0, 'the same', IF(seq MOD 2 = 1, CONCAT('ref-', seq), NULL)),
    IF(seq MOD 2 = 1, CONCAT('order ', seq), NULL),
    CONCAT('00-', IF(seq MOD 10 = 5, '0af7651916cd43dd8448eb211c80319c', LPAD(seq, 32, '0')),
        '-b7ad6b7169203331-01'), 1000 * (1 + seq MOD 10), IF(seq MOD 4 = 0, 'USD', 'EUR')
    FROM seq_1_to_1000000 WHERE seq <= @rows;
-- Those of one customer by a step of ours.
UPDATE trade_lock SET step = 'end', token = RANDOM_BYTES(16), fence = fence + 1, rev = rev + 1
WHERE cust_no = 'C6000' AND op_code = 'WITHDRAW';
-- Half of them keep their first step themselves.
INSERT INTO trade_lock_past (cust_no, serial_no, op_code, rev, logged_at, step, status,
    thread_no, log_no, token, session_id, fence, epoch, attempts, claims, sends, next_run_at,
    conflict, proof, account)
SELECT cust_no, serial_no, op_code, rev - 1, logged_at, 'ask', 'P', thread_no,
    '22222222-1111-4111-8111-111111111111', UNHEX(MD5(token)), session_id, fence - 1, epoch, attempts, claims, sends, next_run_at,
    conflict, proof, account FROM trade_lock WHERE first_rev IS NULL;
-- Asked for in 2020, ended nine days ago, of the first customer, and not blanked yet: E1 ...
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    fence, rev, sends, next_run_at, payload, created_at, updated_at)
SELECT '1', CONCAT('E', seq), 'WITHDRAW', 'S', 'Y', 'seed', UUID(), UNHEX(MD5(seq)), 1000, 1000, 1,
    '2020-01-01', 'of a person', '2020-01-01' + INTERVAL seq SECOND, @now - INTERVAL 9 DAY
    FROM seq_1_to_60;
-- One that was tried 4,000 times: Y1.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    fence, rev, sends, next_run_at, created_at, updated_at)
VALUES ('C1', 'Y1', 'WITHDRAW', 'S', 'Y', 'seed', UUID(), UNHEX(MD5('Y1')), 5000, 5000, 1,
    '2020-01-01', @now, @now);
INSERT INTO trade_lock_past (cust_no, serial_no, op_code, rev, logged_at, step, status,
    thread_no, log_no, token, fence, epoch, attempts, claims, sends, conflict, proof, account)
SELECT cust_no, serial_no, op_code, seq, logged_at, 'claim', 'P', thread_no,
    '22222222-1111-4111-8111-111111111111', UNHEX(MD5(seq)), seq, epoch, attempts, claims, sends,
    conflict, proof, account
FROM trade_lock JOIN seq_1_to_4000 WHERE cust_no = 'C1' AND serial_no = 'Y1';
-- Failed, may be tried anew: F1 ...
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    fence, rev, sends, next_run_at, proof, retryable, created_at, updated_at)
SELECT CONCAT('C', seq), CONCAT('F', seq), 'WITHDRAW', 'S', 'F', 'seed', UUID(),
    UNHEX(MD5(seq)), 1000, 1000, 1, '2020-06-01' + INTERVAL seq SECOND, 'D', 1, @now, @now
    FROM seq_1_to_2000;
-- Held by the living: L1 ...; by the dead, for longer than allowed: D1 ...
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    session_id, fence, rev, sends, max_hold_until, next_run_at, created_at, updated_at)
SELECT CONCAT('C', seq), CONCAT('L', seq), 'WITHDRAW', 'S', 'P', 'ask', UUID(),
    UNHEX(MD5(seq)), @alive, 1000, 1000, 1, @now + INTERVAL 1 HOUR, @now + INTERVAL 1 HOUR,
    @now, @now FROM seq_1_to_2000
UNION ALL
SELECT CONCAT('C', seq), CONCAT('D', seq), 'WITHDRAW', 'S', 'P', 'ask', UUID(),
    UNHEX(MD5(seq)), @dead, 1000, 1000, 1, @now - INTERVAL 1 MINUTE,
    @now - INTERVAL 1 MINUTE, @now, @now FROM seq_1_to_500;
-- Opened: O1 ..., with a retry row each; the first 1,000 due, ten of the
-- oldest and ten of the newest suspect.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    fence, rev, sends, created_at, updated_at)
SELECT CONCAT('C', seq), CONCAT('O', seq), 'WITHDRAW', 'S', 'P', 'reap', UUID(),
    UNHEX(MD5(seq)), 1000, 1000, 1, @now, @now FROM seq_1_to_2000;
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    fence, rev, claims, next_run_at, created_at, updated_at)
SELECT CONCAT('C', seq), CONCAT('O', seq), 'WITHDRAW_RETRY', 'R', 'F', 'reap', UUID(),
    UNHEX(MD5(seq)), 1000, 1000, IF(seq <= 10 OR seq BETWEEN 800 AND 809, 1, 0),
    @now + INTERVAL IF(seq <= 1000, -seq, 3600) SECOND, @now, @now FROM seq_1_to_2000;
-- Worked on: K1 ..., both rows in process; parked: Q1 ...; closed retry rows: W1 ...
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    session_id, fence, rev, sends, max_hold_until, next_run_at, created_at, updated_at)
SELECT CONCAT('C', seq), CONCAT('K', seq), 'WITHDRAW', 'S', 'P', 'claim', UUID(),
    UNHEX(MD5(seq)), @alive, 1000, 1000, 1, @now + INTERVAL 1 HOUR, @now + INTERVAL 1 HOUR,
    @now, @now FROM seq_1_to_200
UNION ALL
SELECT CONCAT('C', seq), CONCAT('K', seq), 'WITHDRAW_RETRY', 'R', 'P', 'claim', UUID(),
    UNHEX(MD5(seq)), @alive, 1000, 1000, 0, NULL, NULL, @now, @now FROM seq_1_to_200
UNION ALL
SELECT CONCAT('C', seq), CONCAT('Q', seq), 'WITHDRAW', 'S', 'P', 'open', UUID(),
    UNHEX(MD5(seq)), NULL, 1000, 1000, 1, NULL, NULL, @now, @now FROM seq_1_to_50
UNION ALL
SELECT CONCAT('C', seq), CONCAT('W', seq), 'WITHDRAW_RETRY', 'R', 'F', 'seed', UUID(),
    UNHEX(MD5(seq)), NULL, 1000, 1000, 0, NULL, NULL, @now, @now FROM seq_1_to_2000;
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    fence, rev, parked, created_at, updated_at)
SELECT CONCAT('C', seq), CONCAT('Q', seq), 'WITHDRAW_RETRY', 'R', 'F', 'open', UUID(),
    UNHEX(MD5(seq)), 1000, 1000, 'attempts used up', @now, @now
FROM seq_1_to_50;
-- Left open beside a finished trade: W3001 ...
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    fence, rev, next_run_at, created_at, updated_at)
SELECT CONCAT('C', seq), CONCAT('W', seq), 'WITHDRAW_RETRY', 'R', 'F', 'reap', UUID(),
    UNHEX(MD5(seq)), 1000, 1000, @now + INTERVAL 2 HOUR, @now, @now
FROM seq_3001_to_3010;
-- One at a time for each customer, and mutexes, one of them overdue.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    session_id, fence, rev, sends, exclusive, repeatable, max_hold_until, next_run_at,
    created_at, updated_at)
SELECT CONCAT('C', seq), CONCAT('T', seq), 'TRANSFER', 'S', 'P', 'ask', UUID(),
    UNHEX(MD5(seq)), @alive, 1000, 1000, 1, 1, 0, @now + INTERVAL 1 HOUR,
    @now + INTERVAL 1 HOUR, @now, @now FROM seq_1_to_1000
UNION ALL
SELECT CONCAT('C', seq), CONCAT('M', seq), 'MUTEX', 'S', 'P', 'ask', UUID(),
    UNHEX(MD5(seq)), @alive, 1000, 1000, 1, 0, 1,
    @now + INTERVAL IF(seq = 8, -1, 1) HOUR, NULL, @now, @now FROM seq_1_to_500;
INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, account,
    filed_at)
SELECT CONCAT('C', seq MOD (@rows DIV 10)), CONCAT('W', seq), 'WITHDRAW', 1, 'SUCCEEDED', 'statement',
    USER(), @now FROM seq_1_to_20000;
-- Much is on file about O8: a web-hook came 200 times, and operators cannot agree.
INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, account,
    filed_at)
SELECT 'C8', 'O8', 'WITHDRAW', 9, 'PENDING', 'webhook', USER(), @now FROM seq_1_to_200;
INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch,
    reason, actor, thread_no, account)
SELECT t.cust_no, t.serial_no, t.op_code, t.rev, ELT(p.seq, 'C', 'F', 'Y'), 1, t.fence, t.epoch,
    'why', 'who', UUID(), 'operator1@localhost'
FROM trade_lock t JOIN seq_1_to_3 p
WHERE t.cust_no = 'C8' AND t.serial_no = 'O8' AND t.op_code = 'WITHDRAW';
-- Failed, and in conflict: X1 ...; proposed by an operator: W1 ...
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    fence, rev, sends, proof, conflict, success_epoch, created_at, updated_at)
SELECT CONCAT('C', seq), CONCAT('X', seq), 'WITHDRAW', 'S', 'F', 'seed', UUID(),
    UNHEX(MD5(seq)), 1000, 1000, 1, 'D', 1, 1, @now, @now FROM seq_1_to_50;
INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch,
    reason, actor, thread_no, account)
SELECT CONCAT('C', s.seq), CONCAT('W', s.seq), 'WITHDRAW', 1000, ELT(p.seq, 'C', 'F'), 1,
    1000, 1, 'why', 'who', UUID(), 'operator1@localhost'
FROM seq_1_to_2000 s JOIN seq_1_to_2 p ORDER BY p.seq;
-- Proposed, to be confirmed: X7, Q7; confirmed: Q9.
INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch,
    reason, actor, thread_no, account)
VALUES ('C7', 'X7', 'WITHDRAW', 1000, 'C', 1, 1000, 1, 'why', 'who', UUID(), 'o1@localhost'),
    ('C7', 'X7', 'WITHDRAW', 1000, 'Y', 1, 1000, 1, 'why', 'who', UUID(), 'o1@localhost'),
    ('C7', 'Q7', 'WITHDRAW', 1000, 'F', 1, 1000, 1, 'why', 'who', UUID(), 'o1@localhost'),
    ('C9', 'Q9', 'WITHDRAW', 1000, 'F', 1, 1000, 1, 'why', 'who', UUID(), 'o1@localhost'),
    ('C9', 'Q9', 'WITHDRAW', 1000, 'F', 2, 1000, 1, 'why', 'who', UUID(), 'o2@localhost');
-- Findings of audits: proposed to be closed.
INSERT INTO audit_closing (finding, part, rule, cust_no, serial_no, op_code, rev, reason,
    actor, thread_no, account)
SELECT CONCAT(MD5(seq)), 1, 'gap', 'C1', CONCAT('W', seq), 'WITHDRAW', 1, 'why', 'who', UUID(),
    'operator1@localhost' FROM seq_1_to_2000
UNION ALL
SELECT '0123456789abcdef0123456789abcdef', 1, 'gap', 'C1', 'W7', 'WITHDRAW', 1, 'why', 'who',
    UUID(), 'operator1@localhost';
-- Resources: held by the living, and free ones.
INSERT INTO resource_lock (resource, status, step, thread_no, session_id, token, fence, rev,
    max_hold_until, locked_at, created_at, updated_at)
SELECT CONCAT('held/', seq), 'L', 'lock', UUID(), @alive, UNHEX(MD5(seq)), 1000, 1000,
    @now + INTERVAL 1 HOUR, @now, @now, @now FROM seq_1_to_2000
UNION ALL
SELECT CONCAT('account/', seq), 'U', 'unlock', UUID(), NULL, UNHEX(MD5(seq)), 1000, 1000,
    NULL, @now, @now, @now FROM seq_1_to_20000;
-- Read-write locks: read/1 ... with three readers each, free/1 ... with a free row, over/1
-- ... with one whose time is over, gone/1 ... with one whose session has ended.  Row locks.
INSERT INTO rw_lock (resource, created_at)
SELECT CONCAT('read/', seq), @now FROM seq_1_to_2000;
INSERT INTO resource_holder (resource, slot, kind, status, step, thread_no, session_id,
    by_session, token, fence, rev, over_at, max_hold_until, acquired_at, updated_at)
SELECT CONCAT('read/', n.seq), s.seq, 'R', 'H', 'read', UUID(), @alive, 1,
    UNHEX(MD5(n.seq)), 1000, 1000, @now + INTERVAL 1 HOUR, @now + INTERVAL 1 HOUR, @now,
    @now FROM seq_1_to_2000 n, seq_1_to_3 s
UNION ALL
SELECT CONCAT('free/', seq), 1, 'R', 'F', 'release', UUID(), NULL, 1, UNHEX(MD5(seq)), 1000,
    1000, NULL, NULL, @now, @now FROM seq_1_to_20000
UNION ALL
SELECT CONCAT('over/', seq), 1, 'W', 'H', 'write', UUID(), @alive, 1, UNHEX(MD5(seq)), 1000,
    1000, @now - INTERVAL 1 MINUTE, @now - INTERVAL 1 MINUTE, @now, @now FROM seq_1_to_500
UNION ALL
SELECT CONCAT('gone/', seq), 1, 'R', 'H', 'read', UUID(), @dead, 1, UNHEX(MD5(seq)), 1000,
    1000, @now + INTERVAL 1 HOUR, @now + INTERVAL 1 HOUR, @now, @now FROM seq_1_to_300;
INSERT INTO row_lock (resource, created_at)
SELECT CONCAT('row/', seq), @now FROM seq_1_to_2000;
UPDATE tl_schema SET retention_ms = 86400000, payload_keep_ms = 86400000;
-- What operators did: 20,000 acts, one a minute; the first is under way, and has 2,000 rows.
INSERT INTO tl_act (act_no, what, said, reason, actor, account, planned, done, begun_at, ended_at)
SELECT seq, 'retry', 'parked', 'why', 'ann', USER(), IF(seq = 1, 3000, 1), 1,
    @now - INTERVAL seq MINUTE, IF(seq = 1, NULL, @now) FROM seq_1_to_20000;
-- And 600 audits, one a minute, one of them with a statement.
INSERT INTO tl_act (act_no, what, said, reason, actor, account, counts, begun_at, ended_at)
SELECT 40000 + seq, 'audit', IF(seq = 50, '--statement bank.csv', ''), '', 'ann', USER(),
    'rows=3 steps=4 payments=1 violations=0 differences=0 closed=0',
    @now - INTERVAL seq MINUTE, @now - INTERVAL seq MINUTE FROM seq_1_to_600;
INSERT INTO tl_act_row (act_no, row_no, cust_no, serial_no, op_code, fence, result, acted_at)
SELECT 1, seq, CONCAT('C', seq), CONCAT('W', seq), 'WITHDRAW', 1000, 'done', @now
    FROM seq_1_to_2000
UNION ALL
SELECT seq, 1, CONCAT('C', seq), CONCAT('W', seq), 'WITHDRAW', 1000, 'done', @now
    FROM seq_2_to_20000;
-- Two forget customer C7; ann has proposed to forget many others.
INSERT INTO tl_act (act_no, what, said, reason, actor, account, planned, begun_at, ended_at)
SELECT 20001, 'forget propose', tl_forget_name('C7'), 'why', 'ann', 'ann@localhost', 0,
    UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
UNION ALL
SELECT 20002, 'forget confirm', tl_forget_name('C7'), 'why', 'bob', USER(), 2, @now, NULL
UNION ALL
SELECT 20002 + seq, 'forget propose', LPAD(seq, 32, '0'), 'why', 'ann', 'ann@localhost', 0,
    @now - INTERVAL 1 MINUTE, @now FROM seq_1_to_100;
-- One more, under way, proposed something of 2,000 trades; the trigger writes its rows.
INSERT INTO tl_act (act_no, what, said, reason, actor, account, planned, done, begun_at)
VALUES (30001, 'resolve propose', '--as failed', 'why', 'ann', USER(), 3000, 2000,
    @now);
INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch,
    reason, actor, thread_no, account, act_no, act_row)
SELECT CONCAT('C', seq), CONCAT('W', seq), 'WITHDRAW', 1000, 'Y', 1, 1000, 1, 'why', 'who', UUID(),
    'operator1@localhost', 30001, seq FROM seq_1_to_2000;
COMMIT;
ANALYZE TABLE trade_lock, trade_lock_past, trade_evidence, audit_closing, tl_session,
    tl_act, tl_act_row, trade_resolution, resource_lock, resource_log, rw_lock, resource_holder, resource_holder_log, row_lock;

-- A restore that two operators have decided to accept, for the statement that carries it out.
INSERT INTO tl_restore (step, reason, actor) VALUES ('declared', 'a test', 'ann');
INSERT INTO tl_restore (restore_no, step, reason, actor, account)
VALUES (1, 'proposed', 'a test', 'ann', 'ann@localhost');
INSERT INTO tl_restore (restore_no, step, reason, actor, account)
VALUES (1, 'confirmed', 'a test', 'bob', 'bob@localhost');
