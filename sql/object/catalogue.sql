-- Which triggers, functions, procedures and views there are, one line "kind name" for each.  An
-- account sees in information_schema only what it has rights on, but the doctor of a service must
-- know of all.  Triggers are found by event_object_schema, as the server looks for them by their
-- table's schema.  With any other condition it opens every table of every database, and fails at
-- one that is just being altered.
CREATE OR REPLACE FUNCTION tl_parts()
RETURNS TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
READS SQL DATA SQL SECURITY DEFINER
RETURN CONCAT_WS('\n',
    (SELECT GROUP_CONCAT('trigger ', trigger_name SEPARATOR '\n')
        FROM information_schema.triggers WHERE event_object_schema = DATABASE()),
    (SELECT GROUP_CONCAT(LOWER(routine_type), ' ', routine_name SEPARATOR '\n')
        FROM information_schema.routines WHERE routine_schema = DATABASE()),
    (SELECT GROUP_CONCAT('view ', table_name SEPARATOR '\n')
        FROM information_schema.views WHERE table_schema = DATABASE()));

-- What they are made of: "kind name HASH" for each trigger, function and procedure, by the server's
-- text.  A view has none that could be compared: the server keeps it in words of its own.
CREATE OR REPLACE FUNCTION tl_parts_made()
RETURNS TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
READS SQL DATA SQL SECURITY DEFINER
RETURN CONCAT_WS('\n',
    (SELECT GROUP_CONCAT('trigger ', trigger_name, ' ', SHA2(CONCAT('CREATE OR REPLACE TRIGGER ',
            trigger_name, ' ', action_timing, ' ', event_manipulation, ' ON ',
            event_object_table, '\nFOR EACH ROW\n', action_statement), 256) SEPARATOR '\n')
        FROM information_schema.triggers WHERE event_object_schema = DATABASE()),
    (SELECT GROUP_CONCAT(LOWER(routine_type), ' ', routine_name, ' ',
            SHA2(CONCAT('SQL SECURITY ', security_type, '\n', routine_definition), 256)
            SEPARATOR '\n')
        FROM information_schema.routines WHERE routine_schema = DATABASE()));
