-- @due trades for the endings of the retry lane: the sync row in process without a holder, the
-- retry row waiting, the money frozen and the order open.  They came in and are due in any order of
-- the customers, as trades do: rows loaded in the order of the key would fill every page, and each
-- claim would split one.
TRUNCATE trade_lock;
TRUNCATE trade_lock_past;
TRUNCATE orders;
TRUNCATE ledger;
SET unique_checks = 0, foreign_key_checks = 0;
UPDATE account SET balance = opened_with,
    frozen = IF(cust_no < CONCAT('C', LPAD(@due, 6, '0')), 10000, 0);
INSERT INTO orders SELECT cust_no, 'due', 10000, 'new' FROM account WHERE frozen > 0;
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token, fence,
    rev, sends, next_run_at, deadline_at, fingerprint, payload, channel, channel_key, amount_minor,
    currency, created_at, updated_at)
SELECT cust_no, 'due', CONCAT('WITHDRAW', op), lane, status, 'open',
    '01234567-89ab-4cde-8f01-23456789abcd', REPEAT('t', 16), 1, 1, 1,
    IF(lane = 'R', UTC_TIMESTAMP(6) - INTERVAL CRC32(cust_no) MICROSECOND, NULL),
    UTC_TIMESTAMP(6) + INTERVAL 72 HOUR,
    REPEAT('f', 32), '100.00 EUR', 'bench', REPEAT('0123456789abcdef', 4), 10000, 'EUR',
    UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
FROM orders JOIN (SELECT '' AS op, 'S' AS lane, 'P' AS status
    UNION ALL SELECT '_RETRY', 'R', 'F') lanes
ORDER BY MD5(cust_no), lane DESC;
