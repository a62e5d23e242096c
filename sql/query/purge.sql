-- What is old and goes.
--
-- What is locked is passed over.  Where nothing may wait for a row, the server answers that with error
-- 1180 and undoes the whole transaction, but takes what follows and its COMMIT (10.11): half of it.
-- So these statements might wait, and do not.

-- name: purge
-- Purges one page of trades, or only counts what would go; the procedure decides what may go and
-- commits by itself.
SET STATEMENT innodb_lock_wait_timeout = 1 FOR
CALL tl_purge_trades(:only_counts, :older_ms, :most, :cust_no, :serial_no, :op_code, @tl_purged)

-- name: purge_acts
-- Purges a page of acts with their rows; the procedure decides which.
CALL tl_purge_acts(:older_ms, :most, @tl_purged_acts)

-- name: purge_acts_result
-- How many rows the last purge_acts of this connection removed.
SELECT @tl_purged_acts

-- name: purge_any
-- One row of an operation that ended before the cut of a purge, which may go then; none: the purge
-- has nothing to look at.  A hold ends a week after the row's last change at most (TL_HOLD_MAX_MS),
-- so what the index says ends later is not read.
SELECT serial_no FROM trade_lock FORCE INDEX (due)
WHERE op_code = :op_code AND (next_run_at IS NULL OR next_run_at < UTC_TIMESTAMP(6)
        - INTERVAL :older_ms * 1000 MICROSECOND + INTERVAL 8 DAY)
    AND status <> 'P' AND conflict = 0 AND parked IS NULL
    AND updated_at < UTC_TIMESTAMP(6) - INTERVAL :older_ms * 1000 MICROSECOND
LIMIT 1

-- name: purge_archived
-- Removes the trades of a page that was named, and is in an archive; the procedure judges each anew,
-- leaves alone what changed since, puts the set on record, and commits by itself.  A second call
-- finds nothing of it.
SET STATEMENT innodb_lock_wait_timeout = 1 FOR
CALL tl_purge_archived(:older_ms, :named, :sha, :before_sha, :set_no, @tl_purged)

-- name: purge_named
-- Names the trades of a page that may go, and removes nothing; the procedure decides which, and
-- keeps nothing locked.  What is read of them afterwards counts only if purge_archived finds
-- them as they were named.
SET STATEMENT innodb_lock_wait_timeout = 1 FOR
CALL tl_purge_named(:older_ms, :most, :cust_no, :serial_no, :op_code, @tl_purged, @tl_named)

-- name: purge_named_result
-- The result of the last purge_named of this connection.
SELECT @tl_purged, @tl_named

-- name: purge_resources
-- Purges one page of lease mutexes, or only counts what would go; the procedure decides what may go
-- and commits by itself.
SET STATEMENT innodb_lock_wait_timeout = 1 FOR
CALL tl_purge_mutexes(:only_counts, :older_ms, :most, :after, @tl_purged)

-- name: purge_result
-- The result of the last page that this connection purged.
SELECT @tl_purged

-- name: purge_rw
-- Purges one page of read-write locks, or only counts what would go; the procedure decides what may
-- go and commits by itself.
SET STATEMENT innodb_lock_wait_timeout = 1 FOR
CALL tl_purge_rw_locks(:only_counts, :older_ms, :most, :after, @tl_purged)

-- name: purge_sessions
-- Purges a batch of sessions that ended and were swept long ago; the procedure decides which.
CALL tl_purge_sessions(:older_ms, :most, @tl_purged_sessions)

-- name: purge_sessions_count
-- Counts the sessions that a purge would remove; the procedure decides which.
CALL tl_purge_sessions_count(:older_ms, @tl_purged_sessions)

-- name: purge_sessions_result
-- How many sessions the last purge_sessions of this connection removed.
SELECT @tl_purged_sessions

-- name: blank_page
-- Blanks the contents of a page of trades that ended long enough ago; the procedure knows where the
-- janitors' walk stands, decides which may go, and commits by itself.
SET STATEMENT innodb_lock_wait_timeout = 5 FOR
CALL tl_blank_page(:most, :anew, @tl_blanked)

-- name: blank_page_result
-- How many trades the last blank_page of this connection blanked, and whether the walk goes on.
SELECT @tl_blanked

-- name: forget_page
-- Blanks the contents of a page of a customer's trades; the procedure judges each, asks for the word of
-- another account, and commits by itself.
SET STATEMENT innodb_lock_wait_timeout = 1 FOR
CALL tl_forget_page(:act_no, :most, :cust_no, :serial_no, :op_code, @tl_purged)

-- name: forget_proposed
-- Whether another account proposed to forget the customer of this name lately, and whether this one did.
SELECT COALESCE(MAX(own = 0), 0) AS by_other, COALESCE(MAX(own), 0) AS by_own
FROM (SELECT tl_account_name(account) <=> tl_account_name(USER()) AS own
    FROM tl_act FORCE INDEX (said)
    WHERE what = 'forget propose' AND said = :name
        AND begun_at > UTC_TIMESTAMP(6) - INTERVAL 7 DAY) p

-- name: forget_seen
-- What acts call a customer, how many trades the customer has, and how many of them may not be
-- forgotten yet: in process, parked, in conflict, or one that may be tried anew.
SELECT tl_forget_name(:cust_no) AS name, COALESCE(SUM(lane = 'S' OR repeatable = 1), 0) AS trades,
    COUNT(DISTINCT IF(status = 'P' OR parked IS NOT NULL OR conflict = 1
        OR (lane = 'R' AND next_run_at IS NOT NULL)
        OR (lane = 'S' AND status = 'F' AND retryable = 1 AND deadline_at > UTC_TIMESTAMP(6)),
        serial_no, NULL)) AS open
FROM trade_lock
WHERE cust_no = :cust_no
