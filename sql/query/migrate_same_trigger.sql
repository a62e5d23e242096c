-- Whether a trigger is the one that this library makes.  The server keeps a trigger's text as it
-- came, except for the character set of literals.  The definer is not compared.
SELECT COUNT(*) FROM information_schema.triggers t
WHERE t.event_object_schema = DATABASE() AND t.trigger_name = :name
    AND BINARY CONCAT('CREATE OR REPLACE TRIGGER ', t.trigger_name, ' ', t.action_timing, ' ',
        t.event_manipulation, ' ON ', t.event_object_table, '\nFOR EACH ROW\n',
        t.action_statement) = BINARY REPLACE(:definition, '_ascii ', ' ')
