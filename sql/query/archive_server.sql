-- Which database this is, for an archive: the server, and whether the server that an archive names
-- is this one, or one that it took over from by a restore that operators accepted.
SELECT tl_identity(), DATABASE(), CURRENT_USER(), CAST(UTC_TIMESTAMP(6) AS CHAR),
    tl_identity() = CONVERT(:identity USING utf8mb4) COLLATE utf8mb4_bin
        OR COUNT(r.restore_no) > 0
FROM tl_schema s
LEFT JOIN tl_restore r ON r.was = CONVERT(:identity USING utf8mb4) COLLATE utf8mb4_bin
    OR r.identity = CONVERT(:identity USING utf8mb4) COLLATE utf8mb4_bin
WHERE s.one = 1
