-- Sessions and their beats.

-- name: holder_silent
-- How long ago the last beat of a session that nobody has ended was, in milliseconds.
SELECT GREATEST(0, TIMESTAMPDIFF(MICROSECOND,
    alive_until - INTERVAL timeout_ms * 1000 MICROSECOND, UTC_TIMESTAMP(6)) DIV 1000)
FROM tl_session
WHERE session_id = :session_id AND ended_at IS NULL

-- name: session_acknowledge
-- A commit that comes after all that this connection has read.  A primary that waits for its replicas
-- answers it only when they have it, and with it all that was committed before.  It is no beat: by
-- their number a process tells which of its commits a promoted server has.
UPDATE tl_session SET alive_until = alive_until + INTERVAL 1 MICROSECOND
WHERE session_id = :session_id

-- name: session_beat
-- A beat: one statement, however many locks the session holds.  0 rows: the session was ended, for
-- good.  The beat also writes what this process knows of the server's clock.  While the session
-- waits on a server that may yet be promoted (waits is 1) the number stays.
UPDATE tl_session x
LEFT JOIN tl_beat b ON b.session_id = x.session_id AND b.beat = x.beat
SET x.waits = x.waits + :waits, x.beat = x.beat + 1 - :waits, b.beat = b.beat + 1 - :waits,
    x.alive_until = UTC_TIMESTAMP(6) + INTERVAL x.timeout_ms * 1000 MICROSECOND,
    x.boot_id = :boot_id, x.clock_us = :clock_us, x.clock_least_us = :clock_least_us,
    x.clock_most_us = :clock_most_us, x.clock_steps = :clock_steps
WHERE x.session_id = :session_id AND x.ended_at IS NULL

-- name: session_close
-- After a beat, and once a session is swept: removes the receipts of what it was granted; see the
-- procedure, and sql/query/purge.sql for why this might wait.
SET STATEMENT innodb_lock_wait_timeout = 1 FOR
CALL tl_receipts_close(:session_id)

-- name: session_end
-- The owner ends its session, and says whether it left no trade in process.  told = 0: it knows of
-- no commit that this server could lack, or never lived under this name; so nobody asks it where it
-- ended.
UPDATE tl_session
SET ended_at = UTC_TIMESTAMP(6),
    ended_on = IF(:told, CONCAT_WS(' ', @@hostname, @@server_id, @@datadir), ''),
    ended_no = (SELECT accepted_no FROM tl_schema WHERE one = 1), ended_by = session_id,
    settled = :settled
WHERE session_id = :session_id AND ended_at IS NULL

-- name: session_expire
-- An observer that saw no beat for a whole time-out ends the session.  This is committed by itself,
-- before any of the session's locks is touched.  A beat that came meanwhile wins.
UPDATE tl_session
SET ended_at = UTC_TIMESTAMP(6), ended_on = CONCAT_WS(' ', @@hostname, @@server_id, @@datadir),
    ended_no = (SELECT accepted_no FROM tl_schema WHERE one = 1), ended_by = :observer
WHERE session_id = :session_id AND beat + waits = :beat AND ended_at IS NULL

-- name: session_insert
-- A process begins.
INSERT INTO tl_session (session_id, program, host, pid, operations, connection_name,
    timeout_ms, boot_id, clock_us, clock_least_us, clock_most_us, clock_steps, obeys, started_at,
    alive_until)
VALUES (:session_id, :program, :host, :pid, :operations, :connection_name, :timeout_ms,
    :boot_id, :clock_us, :clock_least_us, :clock_most_us, :clock_steps, 'pause limit breaker',
    UTC_TIMESTAMP(6),
    UTC_TIMESTAMP(6) + INTERVAL :timeout_ms * 1000 MICROSECOND)

-- name: session_others
-- What an observer compares from beat to beat, and whose session it is.
SELECT session_id, beat + waits, timeout_ms, CONCAT(program, ' ', pid, '@', host)
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NULL AND session_id <> :session_id

-- name: session_seen
-- What a beat found: whether the session was ended, and the number of its last beat; a lower one than
-- was confirmed before shows that the database went back in time.  A row is gone only if somebody
-- removed it by hand or the database was restored.
SELECT ended_at IS NOT NULL, beat FROM tl_session WHERE session_id = :session_id

-- name: session_swept
-- Writes that a session is swept: nothing of it is in process any more.  A row that the dead
-- process still commits afterwards is found when its max_hold is over.
UPDATE tl_session SET swept_at = UTC_TIMESTAMP(6)
WHERE session_id = :session_id AND ended_at IS NOT NULL AND swept_at IS NULL

-- name: session_to_sweep
-- Ended sessions whose lanes may not all be open yet.  The owner of a settled session wrote that it
-- left no trade in process, so only its holders of read-write locks are searched for.  If the owner
-- was wrong, the trade is found when its max_hold is over.
SELECT session_id, settled
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NOT NULL
LIMIT 64

-- name: session_was
-- Which process a session was, and until when it lived, in microseconds; NULL: it lives.
SELECT CONCAT(program, ' ', pid, '@', host),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', ended_at)
FROM tl_session WHERE session_id = :session_id
