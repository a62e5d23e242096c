-- The same as doctor_parts, for an administrator who mends them: tl_parts() itself may be what is
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
