-- Whether this account may itself say when a row was written, and by whom; no row can match.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token,
    fence, rev, created_at, updated_at, logged_at, account)
SELECT cust_no, serial_no, op_code, lane, status, step, thread_no, token, fence, rev,
    created_at, updated_at, logged_at, account
FROM trade_lock WHERE FALSE
