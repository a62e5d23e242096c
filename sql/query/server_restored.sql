-- Whether this server may have lost commits, and whether that is written down for it; which restore
-- was accepted last, and when; and the witness.  The witness is a session of which this process had
-- a beat confirmed, a given number of milliseconds ago: its beat in this database (NULL: the
-- session is gone), and whether a restore was accepted since that beat.  Then which server this is,
-- and whether it takes no writes.  Last: the number under which it was promoted, 0 if it was not, or
-- something else was declared or found since; whether the last accepting was by itself; and whether
-- it has a binary log, and semi-synchronous replicas may be waited for.
SELECT tl_restored(), r.restore_no IS NOT NULL, s.accepted_no,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.accepted_at), x.beat,
    COALESCE(s.accepted_at > UTC_TIMESTAMP(6) - INTERVAL :age_ms * 1000 MICROSECOND, 0),
    tl_identity(), CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF'),
    IF(r.step = 'promoted', s.restore_no, 0), p.restore_no IS NOT NULL,
    @@log_bin + (@@log_bin AND @@rpl_semi_sync_master_enabled)
FROM tl_schema s
LEFT JOIN tl_restore r FORCE INDEX (PRIMARY) ON r.restore_no = s.restore_no
    AND s.restore_no <> s.accepted_no AND r.step IN ('declared', 'found', 'promoted')
    AND r.identity = tl_identity()
LEFT JOIN tl_restore p ON p.restore_no = s.accepted_no AND p.step = 'proved'
LEFT JOIN tl_session x ON x.session_id = :session_id
WHERE s.one = 1
