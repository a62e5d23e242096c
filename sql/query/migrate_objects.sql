-- As doctor_parts.sql, for an administrator who mends schema objects: tl_parts() itself may be
-- missing.
SELECT CONCAT('trigger ', trigger_name)
FROM information_schema.triggers
WHERE event_object_schema = DATABASE()
UNION ALL
SELECT CONCAT(LOWER(routine_type), ' ', routine_name)
FROM information_schema.routines
WHERE routine_schema = DATABASE()
UNION ALL
SELECT CONCAT('view ', table_name)
FROM information_schema.views
WHERE table_schema = DATABASE()
