-- Whether this server may have lost commits, and whether that is written down for it; which restore
-- was accepted last, and when; and the witness.  The witness is a session of which this process had
-- a beat confirmed, a given number of milliseconds ago: its beat in this database (NULL: the
-- session is gone), and whether a restore was accepted since that beat.
SELECT tl_restored(), s.restore_no <> s.accepted_no AND EXISTS (SELECT 1 FROM tl_restore r
        WHERE r.restore_no = s.restore_no AND r.step IN ('declared', 'found')
            AND r.identity = tl_identity()),
    s.accepted_no, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.accepted_at),
    (SELECT beat FROM tl_session WHERE session_id = :session_id),
    COALESCE(s.accepted_at > UTC_TIMESTAMP(6) - INTERVAL :age_ms * 1000 MICROSECOND, 0)
FROM tl_schema s WHERE one = 1
