-- Which database this is, for an archive; whether it is that of an archive that names an
-- installation, or ('') of an older one, which names a server: this one, or one that it took over
-- from by a restore; and whether steps may be missing here.
SELECT tl_identity(), DATABASE(), CURRENT_USER(), CAST(UTC_TIMESTAMP(6) AS CHAR),
    COALESCE(IF(:installation = '',
        tl_identity() = CONVERT(:identity USING utf8mb4) COLLATE utf8mb4_bin
            OR COUNT(r.restore_no) > 0,
        MAX(CAST(s.installation AS CHAR)) = CONVERT(:installation USING utf8mb4)), 0),
    COALESCE(MAX(CAST(s.installation AS CHAR)), ''), tl_restored()
FROM tl_schema s
LEFT JOIN tl_restore r ON r.was = CONVERT(:identity USING utf8mb4) COLLATE utf8mb4_bin
    OR r.identity = CONVERT(:identity USING utf8mb4) COLLATE utf8mb4_bin
WHERE s.one = 1
