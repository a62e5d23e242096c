-- Resources that an ended session holds.  It walks the index of what is held now, since a free row
-- has no over_at.  A holder with a lease of its own outlives the session.
SELECT resource
FROM resource_holder FORCE INDEX (held)
WHERE over_at > '1970-01-01' AND session_id = :session_id AND by_session = 1
LIMIT 256
