-- What keeps a promoted server from being accepted by itself: of each session that has to attest
-- whether it did, and each commit that it lacks.
SELECT a.session_id, COALESCE(CONCAT(x.program, ' ', x.pid, '@', x.host), ''),
    a.attested_at IS NOT NULL, a.missing, a.kept, COALESCE(m.step, ''), COALESCE(m.cust_no, ''),
    COALESCE(m.serial_no, ''), COALESCE(m.op_code, ''), COALESCE(LOWER(HEX(m.token)), '')
FROM tl_attestation a
LEFT JOIN tl_attestation_missing m ON m.restore_no = a.restore_no AND m.session_id = a.session_id
LEFT JOIN tl_session x ON x.session_id = a.session_id
WHERE a.restore_no = :number AND ((a.attested_at IS NULL AND COALESCE(x.ended_on <> '', 1))
    OR a.missing > 0 OR a.kept = 0)
ORDER BY a.session_id, m.item
