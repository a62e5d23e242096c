-- All servers that are on record as accepted here, or as one where a restore was found: those of one
-- installation have some of them in common, since copies begin with the same record.
SELECT identity FROM tl_schema WHERE one = 1
UNION SELECT was FROM tl_restore
UNION SELECT identity FROM tl_restore
