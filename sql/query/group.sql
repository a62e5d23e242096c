-- The steps of many threads in one execution and one commit, in the order of the key: the
-- parameters are arrays with an element for each step.
-- What a row may do is told by its step:
--   ask    a trade's first ask: inserted, or refused by the row that is there
--   end    an ending: the compare-and-set on status, fence and the token of the hold,
--          which rides in the payload's place; never inserted (the insert trigger
--          refuses a row whose first step is an ending)
-- The token is assigned first: where it became ours the rest follows, where it did not
-- the row stays as it is.  RETURNING gives each row's token, which is its verdict.
-- An ending leaves a trade's holder and next moment as they are (finish_sync.sql).
-- Exclusive asks are never here: with two unique keys the wrong row could be updated.
-- Asks for a mutex are in group_mutex.sql, which can do all of this as well: the server
-- prepares each expression anew for each execution, and most groups have no mutex.  For the
-- same reason the plain form is for groups of asks and successes of trades of which nothing is
-- told that is marked as told.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
    session_id, token, fence, rev, sends, max_hold_until, send_until,
    next_run_at, fingerprint, payload, created_at, updated_at/*told(*/,
    deadline_at, channel, channel_key, channel_ref, result, proof, retryable, remark,
    actor/*)told*/)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    COALESCE(?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), fence, ?,
    UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND,
    /*told(*/IF(sends > 0, max_hold_until, NULL)/*else*/max_hold_until/*)told*/,
    GREATEST(max_hold_until, SYSDATE(6) + INTERVAL 5 SECOND),
    ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)/*told(*/,
    UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND, ?, ?, ?, ?, ?, ?, ?, ?/*)told*/)
ON DUPLICATE KEY UPDATE
    token = IF(VALUES(step) = 'end' AND status = 'P' AND fence = VALUES(fence)
        AND token = VALUES(payload)/*told(*/ AND (VALUES(status) = 'Y'
            OR success_epoch IS NULL OR success_epoch <> epoch)/*)told*/, VALUES(token), token),
    status = IF(token = VALUES(token), VALUES(status), status),
    step = IF(token = VALUES(token), VALUES(step), step),
    thread_no = IF(token = VALUES(token), VALUES(thread_no), thread_no),
    log_no = IF(token = VALUES(token), VALUES(log_no), log_no),
    /*told(*/session_id = IF(token = VALUES(token) AND repeatable = 1, NULL, session_id),
    /*)told*/fence = IF(token = VALUES(token), fence + 1, fence),
    rev = IF(token = VALUES(token), rev + 1, rev),
    max_hold_until = IF(token = VALUES(token), VALUES(max_hold_until), max_hold_until),
    /*told(*/channel_ref = IF(token = VALUES(token), COALESCE(VALUES(channel_ref), channel_ref), channel_ref),
    remark = IF(token = VALUES(token), COALESCE(VALUES(remark), remark), remark),
    /*)told*/result = IF(token = VALUES(token), /*told(*/VALUES(result)/*else*/NULL/*)told*/, result),
    proof = IF(token = VALUES(token), /*told(*/VALUES(proof)/*else*/'-'/*)told*/, proof),
    retryable = IF(token = VALUES(token), /*told(*/VALUES(retryable)/*else*/0/*)told*/, retryable),
    actor = IF(token = VALUES(token), /*told(*/VALUES(actor)/*else*/NULL/*)told*/, actor),
    updated_at = IF(token = VALUES(token), VALUES(updated_at), updated_at)
RETURNING token, fence, epoch
