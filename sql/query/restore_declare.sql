-- From now on nothing is granted, armed or failed on this database; the lane only asks.
INSERT INTO tl_restore (step, reason, actor) VALUES ('declared', :reason, :actor)
