-- Which database this is, for an archive; whether the archive that names this installation is its
-- own; and whether steps may be missing here.
SELECT tl_identity(), DATABASE(), CURRENT_USER(), CAST(UTC_TIMESTAMP(6) AS CHAR),
    COALESCE(CAST(installation AS CHAR) = CONVERT(:installation USING utf8mb4), 0),
    COALESCE(CAST(installation AS CHAR), ''), tl_restored()
FROM tl_schema
WHERE one = 1
