-- Jumps of the server's clock.

-- name: clock_future
-- How far in the future the last step of rows in process lies.  Such a step was written while the
-- clock was set forward, and the clock was set back before anybody looked.  Only the rows that are
-- due last are read: a row that is hidden behind them waits no longer than they do.  A waiting
-- lane's sync row may have been written anew since, and still have moments of such a clock; if that
-- is possible, its history is read.
SELECT COALESCE(MAX(GREATEST(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), t.updated_at),
    IF(s.step <> 'clock' AND (s.created_at > UTC_TIMESTAMP(6) OR s.send_until > UTC_TIMESTAMP(6)
            OR s.epoch > 1),
        tl_carried_us(s.cust_no, s.serial_no, s.op_code), 0))), 0)
FROM (SELECT cust_no, serial_no, op_code
    FROM trade_lock FORCE INDEX (due)
    WHERE op_code = :op_code AND next_run_at > UTC_TIMESTAMP(6)
    ORDER BY op_code DESC, next_run_at DESC
    LIMIT 1000) d
STRAIGHT_JOIN trade_lock t ON t.cust_no = d.cust_no AND t.serial_no = d.serial_no
    AND t.op_code = d.op_code
LEFT JOIN trade_lock s ON t.lane = 'R' AND s.cust_no = t.cust_no AND s.serial_no = t.serial_no
    AND s.op_code = LEFT(t.op_code, CHAR_LENGTH(t.op_code) - CHAR_LENGTH('_RETRY'))
    AND s.status = 'P' AND s.repeatable = 0
WHERE IF(t.lane = 'S', t.status = 'P' AND t.repeatable = 0, t.status = 'F')

-- name: clock_last
-- The last clock jump, for the doctor: how many jumps there were, to how many of them the rows are
-- not adjusted yet, its size, how long ago (by today's clock) it was noticed, and by whom.
SELECT c.steps, c.steps - c.settled, s.size_us,
    TIMESTAMPDIFF(MICROSECOND, s.noticed_at, UTC_TIMESTAMP(6)), s.actor
FROM tl_clock c LEFT JOIN tl_clock_step s ON s.step_no = c.steps
WHERE c.one = 1

-- name: clock_look
-- What the server's clock says, to be compared with this machine's; how many jumps of it are on
-- record, and to how many of them the rows are not adjusted yet.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), steps, steps - settled
FROM tl_clock WHERE one = 1

-- name: clock_open
-- As clock_look, for a process that begins, with what the last process of the same boot knew of
-- the clock (NULL: there was none).  For a process without such a predecessor it tells two things.
-- First, how far a beat or an end of a session, or a low-water mark, lies in the future: only a
-- clock that was set back explains that, unless jumps on record do.  Second, whether a session is
-- silent; then it died, or the clock was set forward just now.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), c.steps,
    c.steps - c.settled,
    IF(s.latest > s.explained,
        GREATEST(0, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), s.latest)), 0),
    q.is_silent IS NOT NULL,
    k.clock_us, k.clock_least_us, k.clock_most_us, k.clock_steps
FROM tl_clock c
LEFT JOIN (SELECT clock_us, clock_least_us, clock_most_us, clock_steps
    FROM tl_session FORCE INDEX (boot) WHERE boot_id = :boot_id
    ORDER BY boot_id DESC, clock_us DESC LIMIT 1) k ON TRUE
LEFT JOIN (SELECT 1 AS is_silent FROM tl_session FORCE INDEX (to_sweep)
    WHERE swept_at IS NULL AND ended_at IS NULL AND alive_until < UTC_TIMESTAMP(6)
    LIMIT 1) q ON TRUE
JOIN (SELECT GREATEST(alive.at, ended.at, swept.at, mark.at) AS latest,
        COALESCE(jump.at, CAST('1970-01-01' AS DATETIME(6))) AS explained
    FROM (SELECT COALESCE(MAX(alive_until - INTERVAL timeout_ms * 1000 MICROSECOND),
                CAST('1970-01-01' AS DATETIME(6))) AS at
            FROM tl_session FORCE INDEX (to_sweep)
            WHERE swept_at IS NULL AND ended_at IS NULL) alive,
        (SELECT COALESCE(MAX(ended_at), CAST('1970-01-01' AS DATETIME(6))) AS at
            FROM tl_session FORCE INDEX (to_sweep) WHERE swept_at IS NULL) ended,
        (SELECT COALESCE(MAX(swept_at), CAST('1970-01-01' AS DATETIME(6))) AS at
            FROM tl_session FORCE INDEX (to_sweep)) swept,
        (SELECT COALESCE(MAX(low_water), CAST('1970-01-01' AS DATETIME(6))) AS at
            FROM trade_lock_low_water) mark,
        (SELECT MAX(noticed_at - INTERVAL size_us MICROSECOND) AS at
            FROM tl_clock_step WHERE size_us < 0) jump) s
WHERE c.one = 1

-- name: clock_settle
-- Adjusts one page of rows to a clock jump; the procedure decides and commits by itself.  It might
-- wait for a reason (sql/query/purge.sql).
SET STATEMENT innodb_lock_wait_timeout = 5 FOR
CALL tl_clock_settle(:most, :thread_no, :actor, @tl_clock_settled)

-- name: clock_settled
-- The result of the last page that this connection adjusted.
SELECT @tl_clock_settled

-- name: clock_stepped
-- A clock jump was seen: the procedure records it once for all who saw it.
CALL tl_clock_stepped(:known, :size_us, :before_us, :actor)

-- name: clock_steps
-- The clock jumps, for the audit: after a jump back, a later moment may lie before an earlier one.
SELECT size_us, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', earliest_at)
FROM tl_clock_step WHERE size_us < 0 ORDER BY step_no
