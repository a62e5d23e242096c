-- Lease mutexes, read-write locks and row locks.

-- name: resource_ask
-- Asks for lease mutexes, the first time and every later one.  It takes a row that is unlocked, with
-- a higher fence.  It leaves a holder's row exactly as it is, and one with a minimum hold, so a
-- refusal writes nothing.  The token is assigned first; it tells the later assignments, and the
-- caller, whether the row was taken.
-- Neither sessions nor the clock are looked at here: a subquery of an INSERT would lock the holder's
-- session row, and delay its heartbeat for as long as this transaction lasts, and the clock may have
-- been set.  A caller that was refused reads the rows.  If it finds a holder dead, or a minimum hold
-- over, it names the row in the last parameter, by the rev that it saw: '  name rev  name rev  '.
-- Several rows are locked in the order given; a caller that does not get all of them rolls back.
INSERT INTO resource_lock (resource, status, step, thread_no, log_no, session_id, token,
    fence, rev, lease_until, max_hold_until, free_at, payload, remark, actor, locked_at,
    created_at, updated_at)
VALUES /*rows(*/(:resource, 'L', 'lock', :thread_no, :log_no, :session_id, :token,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), fence,
    UTC_TIMESTAMP(6) + INTERVAL :lease_ms * 1000 MICROSECOND,
    UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    UTC_TIMESTAMP(6) + INTERVAL :min_hold_ms * 1000 MICROSECOND, :payload, :remark, :actor,
    UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))/*)rows*/
ON DUPLICATE KEY UPDATE
    token = IF((status = 'U' AND free_at IS NULL)
            OR LOCATE(CONCAT('  ', resource, ' ', rev, '  '), :dead) > 0,
        VALUES(token), token),
    step = IF(token = VALUES(token), IF(status = 'U', 'lock', 'take over'), step),
    status = IF(token = VALUES(token), 'L', status),
    thread_no = IF(token = VALUES(token), VALUES(thread_no), thread_no),
    log_no = IF(token = VALUES(token), VALUES(log_no), log_no),
    session_id = IF(token = VALUES(token), VALUES(session_id), session_id),
    fence = IF(token = VALUES(token), fence + 1, fence),
    rev = IF(token = VALUES(token), rev + 1, rev),
    lease_until = IF(token = VALUES(token), VALUES(lease_until), lease_until),
    max_hold_until = IF(token = VALUES(token), VALUES(max_hold_until), max_hold_until),
    free_at = IF(token = VALUES(token), VALUES(free_at), free_at),
    payload = IF(token = VALUES(token), VALUES(payload), payload),
    remark = IF(token = VALUES(token), VALUES(remark), remark),
    actor = IF(token = VALUES(token), VALUES(actor), actor),
    locked_at = IF(token = VALUES(token), VALUES(locked_at), locked_at),
    updated_at = IF(token = VALUES(token), VALUES(updated_at), updated_at)
RETURNING token, fence

-- name: resource_columns
-- What operators see of a resource.
resource, state, step, fence, rev, status = 'L' AND lease_until IS NULL AS renewed, thread_no,
    log_no, session_id,
    CONCAT(program, ' ', pid, '@', host) AS holder, remark, actor, payload,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', locked_at) AS locked_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', updated_at) AS updated_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at) AS now_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', lease_until) AS lease_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', max_hold_until) AS max_hold_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', free_at) AS free_us

-- name: resource_force
-- An operator takes a lock away; the procedure decides, and notes the act.
CALL tl_resource_force(:resource, :seen_fence, :thread_no, :log_no, :token, :actor, :remark)

-- name: resource_group
-- Locks and unlocks of many threads, each of one resource, in one execution and one
-- commit, in the order of the names: the parameters are arrays with an element for each.
-- Several of one name come one after the other, and each meets the row as the one before
-- left it: the lock changes hands within one commit.
-- The column step tells what a row may do:
--   lock      as resource_ask, with nothing named
--   release   the compare-and-set of resource_unlock, written as 'unlock'; the token of
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

-- name: resource_guard
-- In the caller's transaction: is the lock still held?  This locks the row until that transaction
-- ends, and whoever takes the lock over must change the row.  So the answer stays true.  The
-- holder's session is not read here: in a serializable transaction that would lock the session's
-- row and stop its heartbeat.
SELECT token = :token AND fence = :fence AND status = 'L' AND max_hold_until > UTC_TIMESTAMP(6)
    AND (lease_until IS NULL OR lease_until > UTC_TIMESTAMP(6)) AS held
FROM resource_lock
WHERE resource = :resource
FOR UPDATE

-- name: resource_list
-- A page of resources in the order of their names, after the one named.
SELECT /*include resource_columns*/
FROM resource_lock_state
WHERE resource > :after
ORDER BY resource
LIMIT :most

-- name: resource_now
-- Whether this token is the row's last one, what is left of the hold, and how often the row was
-- changed: for a step whose answer was lost, for a holder that asks whether it still has the lock,
-- and for a renewal, which has no token of its own.
SELECT token = :token AS mine, status, fence,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), max_hold_until) DIV 1000 AS hold_left_ms,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_until) DIV 1000 AS lease_left_ms,
    rev
FROM resource_lock
WHERE resource = :resource

-- name: resource_renew
-- The holder sets the end of its lease anew, never beyond the end of its hold.  A lease that is
-- over is not revived: others may be told already that the lock is free.
UPDATE resource_lock
SET step = 'renew', thread_no = :thread_no, log_no = :log_no, rev = rev + 1,
    lease_until = LEAST(UTC_TIMESTAMP(6) + INTERVAL :lease_ms * 1000 MICROSECOND, max_hold_until),
    updated_at = UTC_TIMESTAMP(6)
WHERE token = :held_token AND status = 'L' AND max_hold_until > UTC_TIMESTAMP(6)
    AND (lease_until IS NULL OR lease_until > UTC_TIMESTAMP(6))
    AND resource IN (/*rows(*/:resource/*)rows*/)

-- name: resource_show
-- One resource, and its holder's session.
SELECT /*include resource_columns*/
FROM resource_lock_state
WHERE resource = :resource

-- name: resource_token_seen
-- Whether a step with this token was committed and superseded since.
SELECT tl_resource_token_seen(:resource, :token)

-- name: resource_unlock
-- The holder releases.  All rows of a grant carry the same token and no other row does, so a row
-- that was taken over meanwhile is not changed.
UPDATE resource_lock
SET status = 'U', step = 'unlock', thread_no = :thread_no, log_no = :log_no, session_id = NULL,
    lease_until = NULL, max_hold_until = NULL, token = :token, fence = fence + 1, rev = rev + 1,
    updated_at = UTC_TIMESTAMP(6)
WHERE token = :held_token AND status = 'L' AND resource IN (/*rows(*/:resource/*)rows*/)

-- name: row_lock
-- In the caller's transaction: locks the row until that transaction ends.  The row was made before,
-- so no gap is locked.  WAIT n or NOWAIT is put after this statement.
SELECT resource FROM row_lock WHERE resource = :resource FOR UPDATE

-- name: row_lock_make
-- Makes the row of a resource, on a connection of the library's own; it is committed before anybody
-- locks the row.
INSERT INTO row_lock (resource, created_at) VALUES (:resource, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE resource = VALUES(resource)

-- name: row_lock_there
-- Whether the resource has its row already; a consistent read, which waits for nobody.
SELECT resource FROM row_lock WHERE resource = :resource

-- name: rw_claim
-- Behind the gate: a holder or a waiting writer takes a row that is free, new or its own intent.
-- Nobody else can take a free row meanwhile, since that needs the gate.
INSERT INTO resource_holder (resource, slot, kind, status, step, thread_no, log_no,
    session_id, by_session, token, fence, rev, over_at, max_hold_until, remark, actor,
    acquired_at, updated_at)
VALUES (:resource, :slot, :kind, :status, :step, :thread_no, :log_no, :session_id, :by_session,
    :token, :fence, fence,
    UTC_TIMESTAMP(6) + INTERVAL :over_ms * 1000 MICROSECOND,
    UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND, :remark, :actor, UTC_TIMESTAMP(6),
    UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE kind = VALUES(kind), status = VALUES(status), step = VALUES(step),
    thread_no = VALUES(thread_no), log_no = VALUES(log_no),
    session_id = VALUES(session_id), by_session = VALUES(by_session),
    token = VALUES(token), fence = VALUES(fence), rev = rev + 1,
    over_at = VALUES(over_at), max_hold_until = VALUES(max_hold_until),
    remark = VALUES(remark), actor = VALUES(actor), acquired_at = VALUES(acquired_at),
    done_at = NULL, released_at = NULL, updated_at = VALUES(updated_at)

-- name: rw_columns
-- What operators see of a holder of a read-write lock.
resource, slot, kind AS mode, state, step, by_session AS renewed, fence, rev, thread_no, log_no,
    session_id, CONCAT(program, ' ', pid, '@', host) AS holder, remark, actor,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', acquired_at) AS acquired_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', done_at) AS done_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', released_at) AS released_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', over_at) AS over_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', max_hold_until) AS max_hold_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at) AS now_us

-- name: rw_done
-- In the caller's transaction: writes that its business is done.  Whoever wants to free this holder
-- must change the row, and so waits for the end of that transaction.  If the holder was freed
-- before, nothing is changed here, and the caller must roll back.  The last condition is for a
-- transaction that the server has ended already: this step must not commit by itself.
UPDATE resource_holder
SET status = 'D', step = 'done', thread_no = :thread_no, log_no = :log_no, rev = rev + 1,
    done_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND slot = :slot AND token = :held_token AND fence = :fence
    AND status IN ('H', 'D')
    AND over_at > UTC_TIMESTAMP(6) AND (@@in_transaction = 1 OR @@autocommit = 0)

-- name: rw_downgrade
-- A writer becomes a reader.  It only lets others in, so it needs no gate; a second run changes
-- nothing.
UPDATE resource_holder
SET kind = 'R', step = 'downgrade', thread_no = :thread_no, log_no = :log_no, rev = rev + 1,
    updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND slot = :slot AND token = :held_token AND status IN ('H', 'D')
    AND over_at > UTC_TIMESTAMP(6)

-- name: rw_force
-- An operator frees a holder behind the gate; the procedure decides, and notes the act.
CALL tl_rw_force(:resource, :slot, :seen_fence, :thread_no, :log_no, :token, :actor, :remark)

-- name: rw_free
-- Frees the dead holders of a resource: writers, and readers if they are in the way.  A holder that
-- renews at this moment has its row locked, or is found alive.  One whose transaction has written
-- "business done" keeps its row until that transaction ends.  A holder that comes too late fails on
-- the token. Sessions are read without a lock: ended_at was committed before and is never taken
-- back.  But they are read as of one moment, and each holder as it is when the statement comes to
-- it.  A session that seems absent may have begun since that moment, so a holder that came since is
-- left alone.
UPDATE resource_holder
SET status = 'F', step = 'reap', thread_no = :thread_no, session_id = NULL, token = :token,
    rev = rev + 1, over_at = NULL, max_hold_until = NULL, actor = :actor,
    released_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND status <> 'F' AND (kind = 'W' OR :readers_too = 1)
    AND (over_at <= LEAST(UTC_TIMESTAMP(6), CAST('1970-01-01' AS DATETIME(6))
            + INTERVAL :latest_us MICROSECOND)
        OR (by_session = 1 AND acquired_at < UTC_TIMESTAMP(6)
            AND NOT EXISTS (SELECT 1 FROM tl_session x
                WHERE x.session_id = resource_holder.session_id AND x.ended_at IS NULL)))

-- name: rw_gate
-- Locks the gate, so that one grant for a resource is made at a time: what is read next stays true
-- until this transaction ends.  Such transactions are short, so the lock is waited for, for a
-- moment.
SELECT resource FROM rw_lock WHERE resource = :resource FOR UPDATE WAIT 2

-- name: rw_guard
-- In the caller's transaction: is the lock still held?  This locks the row, so the answer stays
-- true until that transaction ends.  The holder's session is not read here: in a serializable
-- transaction that would lock the session's row and stop its heartbeat.
SELECT token = :held_token AND fence = :fence AND status IN ('H', 'D')
    AND over_at > UTC_TIMESTAMP(6)
    AS held
FROM resource_holder
WHERE resource = :resource AND slot = :slot
FOR UPDATE

-- name: rw_list
-- A page of holders in the order of their resources, after the one named.
SELECT /*include rw_columns*/
FROM resource_holder_state
WHERE resource >= :resource AND (resource > :resource OR slot > :slot)
ORDER BY resource, slot
LIMIT :most

-- name: rw_look
-- Who holds the resource, behind the gate.  Every grant was committed before the gate opened, so no
-- holder is missed.  If a release or a death is missed, that only costs another look.  Dead holders
-- count until they are freed (rw_free).
SELECT
    COALESCE(MAX(fence), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) + 1
        AS fence,
    COALESCE(MAX(slot), 0) + 1 AS new_slot,
    MIN(IF(status = 'F', slot, NULL)) AS free_slot,
    MAX(IF(token = :intent AND status = 'W', slot, NULL)) AS my_intent,
    SUM(status IN ('H', 'D') AND kind = 'W' AND lives) AS writers,
    SUM(status IN ('H', 'D') AND kind = 'R' AND lives) AS readers,
    SUM(status = 'W' AND token <> :intent AND lives) AS intents,
    SUM(status <> 'F' AND kind = 'W' AND NOT lives) AS dead_writers,
    SUM(status <> 'F' AND kind = 'R' AND NOT lives) AS dead_readers
FROM (SELECT h.fence, h.slot, h.status, h.kind, h.token,
        h.over_at > LEAST(UTC_TIMESTAMP(6), CAST('1970-01-01' AS DATETIME(6))
            + INTERVAL :latest_us MICROSECOND)
        AND (h.by_session = 0 OR x.session_id IS NOT NULL) AS lives
    FROM resource_holder h
    LEFT JOIN tl_session x ON x.session_id = h.session_id AND x.ended_at IS NULL
    WHERE h.resource = :resource) h

-- name: rw_make
-- The first ask for a resource makes its row, in a transaction of its own.  An ask that comes at
-- the same moment finds the row there.
INSERT INTO rw_lock (resource, created_at) VALUES (:resource, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE resource = VALUES(resource)

-- name: rw_now
-- Whether this token is the row's last one, what is left of the hold, and how often the row was
-- changed: for a step whose answer was lost, and for one that has no token of its own.
SELECT token = :token AS mine, status, fence,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), max_hold_until) DIV 1000 AS hold_left_ms,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), over_at) DIV 1000 AS left_ms, rev, step
FROM resource_holder
WHERE resource = :resource AND slot = :slot

-- name: rw_overdue
-- Resources with holders whose time is over, in the order of the index.
SELECT resource
FROM resource_holder FORCE INDEX (held)
WHERE over_at <= UTC_TIMESTAMP(6)
ORDER BY over_at
LIMIT 256

-- name: rw_release
-- A holder releases, or a writer stops waiting.  The token belongs to one grant only, so a row that
-- was freed meanwhile is not changed, whoever has it now.
UPDATE resource_holder
SET status = 'F', step = :step, thread_no = :thread_no, log_no = :log_no, session_id = NULL,
    token = :token,
    rev = rev + 1, over_at = NULL, max_hold_until = NULL,
    released_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND slot = :slot AND token = :held_token AND status <> 'F'

-- name: rw_renew
-- The holder sets the end of its lease anew, never beyond the end of its hold.  A lease that is
-- over is not revived.
UPDATE resource_holder
SET step = 'renew', thread_no = :thread_no, log_no = :log_no, rev = rev + 1, by_session = 0,
    over_at = LEAST(UTC_TIMESTAMP(6) + INTERVAL :over_ms * 1000 MICROSECOND, max_hold_until),
    updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND slot = :slot AND token = :held_token AND status IN ('H', 'D')
    AND over_at > UTC_TIMESTAMP(6)

-- name: rw_session
-- Resources that an ended session holds.  It walks the index of what is held now, since a free row
-- has no over_at.  A holder with a lease of its own outlives the session.
SELECT resource
FROM resource_holder FORCE INDEX (held)
WHERE over_at > '1970-01-01' AND session_id = :session_id AND by_session = 1
LIMIT 256

-- name: rw_show
-- The holders of one resource, after the one numbered.
SELECT /*include rw_columns*/
FROM resource_holder_state
WHERE resource = :resource AND slot > :slot
ORDER BY resource, slot
LIMIT :most

-- name: rw_token_seen
-- Whether a step with this token was committed and superseded since.
SELECT tl_holder_token_seen(:resource, :slot, :token)
