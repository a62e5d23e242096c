-- All slots that are here, or were, for the map of a fleet.  What is read may be over a moment later:
-- it only tells where to ask, and the ask's own statement is refused where the slot is not.
SELECT slot, state, version, other FROM tl_slot FORCE INDEX (PRIMARY) ORDER BY slot
