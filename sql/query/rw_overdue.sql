-- Resources with holders whose time is over, in the order of the index.
SELECT resource
FROM resource_holder FORCE INDEX (held)
WHERE over_at <= UTC_TIMESTAMP(6)
ORDER BY over_at
LIMIT 256
