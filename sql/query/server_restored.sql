-- Whether this server may have lost commits, and whether that is written down for it; which restore
-- was accepted last, and when; and what bears witness: the beat that this database has of a session
-- that was confirmed a higher one, or NULL where the session is gone, with whether a restore was
-- accepted since that beat (it went so many milliseconds ago).
SELECT tl_restored(), s.restore_no <> s.accepted_no AND EXISTS (SELECT 1 FROM tl_restore r
        WHERE r.restore_no = s.restore_no AND r.step IN ('declared', 'found')
            AND r.identity = tl_identity()),
    s.accepted_no, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.accepted_at),
    (SELECT beat FROM tl_session WHERE session_id = :session_id),
    COALESCE(s.accepted_at > UTC_TIMESTAMP(6) - INTERVAL :age_ms * 1000 MICROSECOND, 0)
FROM tl_schema s WHERE one = 1
