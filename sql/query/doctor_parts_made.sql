-- What the triggers, functions and procedures are made of: "kind name HASH", one a line.
SELECT tl_parts_made()
