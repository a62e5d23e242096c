-- A trade's first ask: the row, or a duplicate key.  No SELECT comes before it: two first asks race
-- on the primary key and one of them gets 1062.  An open transaction that holds the key answers
-- 1205 at once, since this statement never waits for a row lock. next_run_at is later than the
-- moment at which the row is written, however long the statement was held up before
-- (trade_lock_low_water). The fence starts from the server's microseconds, above every purged life
-- of the key. What is marked as told the plain form leaves to the table's defaults; it is for one
-- who may send at once.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
    session_id, token, sends, max_hold_until, send_until, next_run_at,
    fingerprint, payload, created_at, updated_at,/*told(*/
    deadline_at, exclusive, channel, channel_key, remark, actor,/*)told*/ fence, rev)
VALUES (?, ?, ?, 'S', 'P', 'ask', ?, ?, ?, ?, ?,
    UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND,
    /*told(*/IF(sends > 0, max_hold_until, NULL)/*else*/max_hold_until/*)told*/,
    GREATEST(max_hold_until, SYSDATE(6) + INTERVAL 5 SECOND), ?, ?,
    UTC_TIMESTAMP(6), UTC_TIMESTAMP(6),
    /*told(*/UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND, ?, ?, ?, ?, ?,/*)told*/
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), fence)
RETURNING fence
