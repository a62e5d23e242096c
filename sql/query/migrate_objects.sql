-- As doctor_parts.sql, for an administrator who mends schema objects: tl_parts() itself may be
-- missing.  What runs as an account that is gone is as good as missing, and so is what runs as one
-- that this administrator may not see.  The rule of slots is never replaced.
SELECT CONCAT(o.kind, ' ', o.name)
FROM (SELECT 'trigger' AS kind, trigger_name AS name, definer
    FROM information_schema.triggers
    WHERE event_object_schema = DATABASE()
    UNION ALL
    SELECT LOWER(routine_type), routine_name,
        IF(security_type = 'DEFINER' AND routine_name <> 'tl_customer_slot', definer, NULL)
    FROM information_schema.routines
    WHERE routine_schema = DATABASE()
    UNION ALL
    SELECT 'view', table_name, IF(security_type = 'DEFINER', definer, NULL)
    FROM information_schema.views
    WHERE table_schema = DATABASE()) o
WHERE o.definer IS NULL OR EXISTS (SELECT 1 FROM information_schema.user_privileges u
    WHERE REPLACE(u.grantee, '\'', '') = o.definer)
