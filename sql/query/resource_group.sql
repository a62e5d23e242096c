-- Locks and unlocks of many threads, each of one resource, in one execution and one
-- commit, in the order of the names: the parameters are arrays with an element for each.
-- Several of one name come one after the other, and each meets the row as the one before
-- left it: the lock changes hands within one commit.
-- The column step tells what a row may do:
--   lock      as resource_ask.sql, with nothing named
--   release   the compare-and-set of resource_unlock.sql, written as 'unlock'; the token of
--             the hold stands in the payload's place.  It is never inserted: the insert
--             trigger refuses a row whose first step is a release, a word that no row keeps
-- The token is assigned first: if it became ours, the other assignments follow; if not, the
-- row stays as it is.  RETURNING gives each row's token, which is its verdict.  The columns
-- that an unlock leaves alone (payload, minimum hold, holder) depend on the new status.
INSERT INTO resource_lock (resource, status, step, thread_no, log_no, session_id, token,
    fence, rev, lease_until, max_hold_until, free_at, payload, remark, actor, locked_at,
    created_at, updated_at)
VALUES (:resource, :status, :step, :thread_no, :log_no, :session_id, :token,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), fence,
    UTC_TIMESTAMP(6) + INTERVAL :lease_ms * 1000 MICROSECOND,
    UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    UTC_TIMESTAMP(6) + INTERVAL :min_hold_ms * 1000 MICROSECOND, :payload, :remark, :actor,
    UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE
    token = IF(IF(VALUES(step) = 'release',
            status = 'L' AND token = VALUES(payload),
            status = 'U' AND free_at IS NULL),
        VALUES(token), token),
    step = IF(token = VALUES(token), IF(VALUES(step) = 'release', 'unlock',
        IF(status = 'U', 'lock', 'take over')), step),
    status = IF(token = VALUES(token), VALUES(status), status),
    thread_no = IF(token = VALUES(token), VALUES(thread_no), thread_no),
    log_no = IF(token = VALUES(token), VALUES(log_no), log_no),
    session_id = IF(token = VALUES(token), VALUES(session_id), session_id),
    fence = IF(token = VALUES(token), fence + 1, fence),
    rev = IF(token = VALUES(token), rev + 1, rev),
    lease_until = IF(token = VALUES(token), VALUES(lease_until), lease_until),
    max_hold_until = IF(token = VALUES(token), VALUES(max_hold_until), max_hold_until),
    free_at = IF(token = VALUES(token) AND status = 'L', VALUES(free_at), free_at),
    payload = IF(token = VALUES(token) AND status = 'L', VALUES(payload), payload),
    remark = IF(token = VALUES(token) AND status = 'L', VALUES(remark), remark),
    actor = IF(token = VALUES(token) AND status = 'L', VALUES(actor), actor),
    locked_at = IF(token = VALUES(token) AND status = 'L', VALUES(locked_at), locked_at),
    updated_at = IF(token = VALUES(token), VALUES(updated_at), updated_at)
RETURNING token, fence
