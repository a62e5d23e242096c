-- Archives of purged trades.

-- name: archive_recorded
-- What is on record of the newest set that an archive has: whether it is, the number of a set that
-- followed it (0: none did), and whether a restore was accepted since it was written, so that the
-- record may have been lost.  '-' stands for no set: every one followed that, whatever stands
-- before it, since a restore may have lost the record of the first.
SELECT own.sha IS NOT NULL, COALESCE(next.set_no, 0),
    COALESCE(s.accepted_at > CONVERT(:written_at USING utf8mb4), 0)
FROM tl_schema s
LEFT JOIN tl_archive_set own ON own.sha = CONVERT(:sha USING ascii) COLLATE ascii_bin
LEFT JOIN tl_archive_set next ON next.before_sha = CONVERT(:sha USING ascii) COLLATE ascii_bin
    OR (CONVERT(:sha USING ascii) = '-' AND next.set_no > 0)
WHERE s.one = 1
ORDER BY next.set_no
LIMIT 1

-- name: archive_server
-- Which database this is, for an archive; whether the archive that names this installation is its
-- own; and whether steps may be missing here.
SELECT tl_identity(), DATABASE(), CURRENT_USER(), CAST(UTC_TIMESTAMP(6) AS CHAR),
    COALESCE(CAST(installation AS CHAR) = CONVERT(:installation USING utf8mb4), 0),
    COALESCE(CAST(installation AS CHAR), ''), tl_restored()
FROM tl_schema
WHERE one = 1

-- name: archive_set
-- How many trades were removed under a set, by the record; how many sets are on record in all, and
-- how many trades were removed under those.
SELECT COALESCE(SUM(IF(sha = CONVERT(:sha USING ascii) COLLATE ascii_bin, trades, 0)), 0),
    COALESCE(SUM(sha = CONVERT(:sha USING ascii) COLLATE ascii_bin), 0), COUNT(*),
    COALESCE(SUM(trades), 0)
FROM tl_archive_set

-- name: archive_trade_evidence
-- The evidence about the trades that a page of a purge named, for an archive.
SELECT t.evidence_id, t.cust_no, t.serial_no, t.op_code, t.epoch, t.channel_key, t.outcome,
    t.final, t.channel_ref, t.source, t.remark, t.thread_no, t.account, t.filed_at,
    t.amount_minor, t.currency, t.contradicts
FROM JSON_TABLE(:named, '$[*]' COLUMNS (
    /*include named_columns*/)) n
STRAIGHT_JOIN trade_evidence t ON t.cust_no = n.cust_no AND t.serial_no = n.serial_no
    AND t.op_code = n.op_code
ORDER BY t.cust_no, t.serial_no, t.op_code, t.evidence_id

-- name: archive_trade_lock
-- The rows of the trades that a page of a purge named, both lanes, for an archive: every column, what
-- is binary in hexadecimal.  Behind them stands what an audit has to know of other tables: when the
-- sessions of the last and of the first step ended (1: it was purged, 0: it has not ended or there
-- was none), and how many operators made the last step, if that is a decision.
SELECT t.cust_no, t.serial_no, t.op_code, t.lane, t.status, t.step, t.thread_no, t.log_no,
    t.session_id, LOWER(HEX(t.token)) AS token, t.fence, t.rev, t.epoch, t.attempts, t.claims,
    t.sends, t.send_until, t.not_found_since, t.seen_by_channel, t.cancel_tried, t.success_epoch,
    t.max_hold_until, t.next_run_at, t.deadline_at, t.parked, t.conflict, t.exclusive,
    t.repeatable, t.retryable, t.proof, LOWER(HEX(t.fingerprint)) AS fingerprint, t.channel,
    t.channel_key, t.channel_ref, LOWER(HEX(t.payload)) AS payload,
    LOWER(HEX(t.result)) AS result, t.remark, t.actor, t.blanked_rev, t.created_at, t.updated_at,
    t.logged_at, t.account, t.first_rev,
    t.first_logged_at, t.first_account, t.first_thread_no, t.first_log_no, t.first_session_id,
    LOWER(HEX(t.first_token)) AS first_token, t.first_sends, t.first_max_hold_until,
    t.first_next_run_at, t.first_channel_key, t.longest_hold_ms, /*include said_columns*/,
    IF(t.session_id IS NULL, 0, IF(x.session_id IS NULL, 1,
        COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', x.ended_at), 0))) AS session_ended_us,
    IF(t.first_session_id IS NULL, 0, IF(y.session_id IS NULL, 1,
        COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', y.ended_at), 0)))
        AS first_session_ended_us,
    COALESCE(d.operators, 0) AS operators
FROM JSON_TABLE(:named, '$[*]' COLUMNS (
    /*include named_columns*/)) n
STRAIGHT_JOIN trade_lock t ON t.cust_no = n.cust_no AND t.serial_no = n.serial_no
    AND t.op_code IN (n.op_code, CONCAT(n.op_code, _ascii '_RETRY'))
LEFT JOIN tl_session x ON x.session_id = t.session_id
LEFT JOIN tl_session y ON y.session_id = t.first_session_id
LEFT JOIN (
    SELECT v.cust_no, v.serial_no, v.op_code, v.rev, v.verdict,
        COUNT(DISTINCT tl_account_name(v.account)) AS operators
    FROM JSON_TABLE(:named, '$[*]' COLUMNS (
        /*include named_columns*/)) m
    STRAIGHT_JOIN trade_resolution v ON v.cust_no = m.cust_no AND v.serial_no = m.serial_no
        AND v.op_code = m.op_code AND v.part < 3
    GROUP BY v.cust_no, v.serial_no, v.op_code, v.rev, v.verdict) d
    ON d.cust_no = t.cust_no AND d.serial_no = t.serial_no AND d.op_code = t.op_code
    AND d.rev + 1 = t.rev AND d.verdict = CASE t.step WHEN 'resolve clear' THEN 'C'
        WHEN 'resolve paid' THEN 'Y' WHEN 'resolve failed' THEN 'F' END
ORDER BY t.cust_no, t.serial_no, t.op_code

-- name: archive_trade_lock_past
-- The kept steps of the trades that a page of a purge named, both lanes, for an archive, as
-- archive_trade_lock.  Behind them: when the session of the step ended, and how many operators
-- made it.
SELECT t.cust_no, t.serial_no, t.op_code, t.rev, t.logged_at, t.step, t.status, t.thread_no,
    t.log_no, t.session_id, LOWER(HEX(t.token)) AS token, t.fence, t.epoch, t.attempts, t.claims,
    t.sends, t.send_until, t.max_hold_until, t.next_run_at, t.parked, t.conflict, t.proof,
    t.channel_key, t.channel_ref, t.remark, t.actor, t.account, t.longest_hold_ms,
    IF(t.session_id IS NULL, 0, IF(x.session_id IS NULL, 1,
        COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', x.ended_at), 0))) AS session_ended_us,
    COALESCE(d.operators, 0) AS operators
FROM JSON_TABLE(:named, '$[*]' COLUMNS (
    /*include named_columns*/)) n
STRAIGHT_JOIN trade_lock_past t ON t.cust_no = n.cust_no AND t.serial_no = n.serial_no
    AND t.op_code IN (n.op_code, CONCAT(n.op_code, _ascii '_RETRY'))
LEFT JOIN tl_session x ON x.session_id = t.session_id
LEFT JOIN (
    SELECT v.cust_no, v.serial_no, v.op_code, v.rev, v.verdict,
        COUNT(DISTINCT tl_account_name(v.account)) AS operators
    FROM JSON_TABLE(:named, '$[*]' COLUMNS (
        /*include named_columns*/)) m
    STRAIGHT_JOIN trade_resolution v ON v.cust_no = m.cust_no AND v.serial_no = m.serial_no
        AND v.op_code = m.op_code AND v.part < 3
    GROUP BY v.cust_no, v.serial_no, v.op_code, v.rev, v.verdict) d
    ON d.cust_no = t.cust_no AND d.serial_no = t.serial_no AND d.op_code = t.op_code
    AND d.rev + 1 = t.rev AND d.verdict = CASE t.step WHEN 'resolve clear' THEN 'C'
        WHEN 'resolve paid' THEN 'Y' WHEN 'resolve failed' THEN 'F' END
ORDER BY t.cust_no, t.serial_no, t.op_code, t.rev

-- name: archive_trade_resolution
-- What operators decided about the trades that a page of a purge named, for an archive.
SELECT t.cust_no, t.serial_no, t.op_code, t.rev, t.verdict, t.part, t.fence, t.epoch, t.reason,
    t.actor, t.thread_no, t.account, t.decided_at, t.although_pending, t.log_no, t.worker,
    t.act_no, t.act_row
FROM JSON_TABLE(:named, '$[*]' COLUMNS (
    /*include named_columns*/)) n
STRAIGHT_JOIN trade_resolution t ON t.cust_no = n.cust_no AND t.serial_no = n.serial_no
    AND t.op_code = n.op_code
ORDER BY t.cust_no, t.serial_no, t.op_code, t.rev, t.verdict, t.part
