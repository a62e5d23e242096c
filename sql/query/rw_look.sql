-- Who holds the resource, behind the gate.  Every grant was committed before the gate opened, so no
-- holder is missed.  If a release or a death is missed, that only costs another look.  Dead holders
-- count until they are freed (rw_free.sql).
SELECT
    COALESCE(MAX(fence), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) + 1
        AS fence,
    COALESCE(MAX(slot), 0) + 1 AS new_slot,
    MIN(IF(status = 'F', slot, NULL)) AS free_slot,
    MAX(IF(token = :intent AND status = 'W', slot, NULL)) AS my_intent,
    SUM(status IN ('H', 'D') AND kind = 'W' AND lives) AS writers,
    SUM(status IN ('H', 'D') AND kind = 'R' AND lives) AS readers,
    SUM(status = 'W' AND token <> :intent AND lives) AS intents,
    SUM(status <> 'F' AND kind = 'W' AND NOT lives) AS dead_writers,
    SUM(status <> 'F' AND kind = 'R' AND NOT lives) AS dead_readers
FROM (SELECT h.fence, h.slot, h.status, h.kind, h.token,
        h.over_at > LEAST(UTC_TIMESTAMP(6), CAST('1970-01-01' AS DATETIME(6))
            + INTERVAL :latest_us MICROSECOND)
        AND (h.by_session = 0 OR x.session_id IS NOT NULL) AS lives
    FROM resource_holder h
    LEFT JOIN tl_session x ON x.session_id = h.session_id AND x.ended_at IS NULL
    WHERE h.resource = :resource) h
