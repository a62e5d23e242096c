-- Who holds the resource, behind the gate.  Every grant was committed before the gate opened, so no
-- holder is missed.  If a release or a death is missed, that only costs another look.  Dead holders
-- count until they are freed (rw_free.sql).
SELECT
    COALESCE(MAX(h.fence), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) + 1
        AS fence,
    COALESCE(MAX(h.slot), 0) + 1 AS new_slot,
    MIN(IF(h.status = 'F', h.slot, NULL)) AS free_slot,
    MAX(IF(h.token = :intent AND h.status = 'W', h.slot, NULL)) AS my_intent,
    SUM(h.status IN ('H', 'D') AND h.kind = 'W' AND h.over_at > UTC_TIMESTAMP(6)
        AND (h.by_session = 0 OR x.session_id IS NOT NULL)) AS writers,
    SUM(h.status IN ('H', 'D') AND h.kind = 'R' AND h.over_at > UTC_TIMESTAMP(6)
        AND (h.by_session = 0 OR x.session_id IS NOT NULL)) AS readers,
    SUM(h.status = 'W' AND h.token <> :intent AND h.over_at > UTC_TIMESTAMP(6)
        AND (h.by_session = 0 OR x.session_id IS NOT NULL)) AS intents,
    SUM(h.status <> 'F' AND h.kind = 'W' AND NOT (h.over_at > UTC_TIMESTAMP(6)
        AND (h.by_session = 0 OR x.session_id IS NOT NULL))) AS dead_writers,
    SUM(h.status <> 'F' AND h.kind = 'R' AND NOT (h.over_at > UTC_TIMESTAMP(6)
        AND (h.by_session = 0 OR x.session_id IS NOT NULL))) AS dead_readers
FROM resource_holder h
LEFT JOIN tl_session x ON x.session_id = h.session_id AND x.ended_at IS NULL
WHERE h.resource = :resource
