-- The first ask of a trade, or an ask for a repeatable row. Two first asks race on the primary key.
--
-- ask_insert: makes the row, or answers a duplicate key (1062). No SELECT comes before it. If an
-- open transaction holds the key it answers 1205 at once, since it never waits for a row lock.
-- ask_repeatable: one statement for the first time and every later one. A row that may be taken
-- over is taken over as reask.sql says; any other is left as it is, and a refusal writes nothing.
-- group, group_repeatable: the steps of many threads in one execution and one commit, in the order
-- of the key; each parameter is an array with an element for each step. An ask is inserted, or
-- refused by the row that is there. An ending is never inserted (the trigger refuses a row whose
-- first step is an ending): it changes the row as finish.sql says. The fence and token that it
-- compares travel in columns that an ending does not need. An ask for a repeatable trade is only in
-- group_repeatable: the server prepares each expression anew for each execution, and most groups
-- have no such ask. RETURNING gives each row's token, which is its verdict. Exclusive asks are in
-- no group: with two unique keys the wrong row could be updated.
--
-- next_run_at is later than the moment at which the row is written, however long the statement was
-- held up before (trade_lock_low_water). The fence starts from the server's microseconds, so it is
-- above every fence that the key had before a purge. The columns that the short form leaves out
-- have the same values by default.
form ask_insert: alone
form ask_insert_short: alone, short
form ask_repeatable: alone, repeatable; else reask
form group: group; else finish
form group_short: group, short; else finish
form group_repeatable: group, with repeatables; else finish, reask

INSERT
    cust_no = :cust_no
    serial_no = :serial_no
    op_code = :op_code
    lane = :lane
    status = 'P'                                    -- alone
    status = :status                                -- group
    step = 'ask'                                    -- alone
    step = :group_step                              -- group
    thread_no = :thread_no
    log_no = :log_no
    session_id = :session_id
    token = :token
    fence = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) -- alone
    fence = COALESCE(:ended_fence,                  -- group, carries held_fence
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
    rev = fence
    sends = :sends
    repeatable = 1                                  -- repeatable
    repeatable = IF(step = 'reask', 1, 0)           -- with repeatables
    max_hold_until = UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND
    send_until = IF(sends > 0, max_hold_until, NULL) -- short: max_hold_until
    next_run_at = GREATEST(max_hold_until,          -- not repeatable, not with repeatables
        SYSDATE(6) + INTERVAL 5 SECOND)
    next_run_at = IF(step = 'ask',                  -- with repeatables
        GREATEST(max_hold_until, SYSDATE(6) + INTERVAL 5 SECOND), NULL)
    fingerprint = :fingerprint
    payload = :payload                              -- carries held_token
    created_at = UTC_TIMESTAMP(6)
    updated_at = UTC_TIMESTAMP(6)
    deadline_at = UTC_TIMESTAMP(6)                  -- not short, not repeatable
        + INTERVAL :deadline_ms * 1000 MICROSECOND
    exclusive = :exclusive                          -- alone, not short, not repeatable
    channel = :channel                              -- not short, not repeatable
    channel_key = :channel_key                      -- not short, not repeatable
    amount_minor = :amount_minor                    -- not short, not repeatable
    currency = :currency                            -- not short, not repeatable
    batch = :batch                                  -- not short, not repeatable
    traceparent = :traceparent                      -- not short, not repeatable
    channel_ref = :channel_ref                      -- group, not short
    result = :result                                -- group, not short
    proof = :proof                                  -- group, not short
    retryable = :retryable                          -- group, not short
    remark = :remark                                -- not short
    actor = :actor                                  -- not short
RETURNING fence                                     -- alone, not repeatable
RETURNING token, fence, epoch                       -- repeatable
RETURNING token, fence, epoch                       -- group
