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
