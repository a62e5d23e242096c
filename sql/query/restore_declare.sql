-- From now on nothing is granted, armed or failed on this database; the lane only asks.  Declared, or
-- promoted: then a trigger checks that this is another server than the accepted one, and writes which
-- sessions have to attest.
INSERT INTO tl_restore (step, reason, actor) VALUES (:how, :reason, :actor)
