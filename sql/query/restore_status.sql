-- The restore that is open, or the last one: since when steps may be missing, how it became known, on
-- which server, who proposed to accept it and who confirmed that; and whether it became known on
-- this server.
SELECT tl_restored(), s.restore_no, s.accepted_no,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.accepted_at), COALESCE(s.identity, ''),
    tl_identity(), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', f.decided_at),
    o.step, o.reason, COALESCE(o.actor, ''), o.account, p.reason, COALESCE(p.actor, ''),
    p.account, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', p.decided_at),
    tl_account_name(p.account) <=> tl_account_name(CURRENT_USER()),
    COALESCE(p.identity <> tl_identity(), 0),
    c.account, tl_account_name(c.account) <=> tl_account_name(CURRENT_USER()), c.doubtful,
    COALESCE(o.identity = tl_identity(), 0)
FROM tl_schema s
LEFT JOIN tl_restore o FORCE INDEX (PRIMARY) ON o.restore_no = s.restore_no
    AND o.step IN ('declared', 'found', 'promoted')
LEFT JOIN tl_restore f FORCE INDEX (PRIMARY) ON f.restore_no = s.accepted_no + 1
    AND f.step IN ('declared', 'found', 'promoted')
LEFT JOIN tl_restore p ON p.restore_no = s.restore_no AND p.step = 'proposed'
LEFT JOIN tl_restore c ON c.restore_no = s.restore_no AND c.step = 'confirmed'
WHERE one = 1
