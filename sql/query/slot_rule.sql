-- What both ends of a move must have in common: the rule of slots, and that no restore is open.
SELECT tl_restored(), SHA2(routine_definition, 256)
FROM information_schema.routines
WHERE routine_schema = DATABASE() AND routine_name = 'tl_customer_slot'
