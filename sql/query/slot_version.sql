-- Whether this shard has a slot now, and under which version, for whoever is about to read rows of
-- its customers: no row, if it has not.  If the slot is handed over right afterwards the rows that
-- are read here are as they were handed over, so the answer was true when it was asked for.
SELECT version FROM tl_slot WHERE slot = :slot AND state IN ('owned', 'leaving')
