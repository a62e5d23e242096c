-- Slots that nobody owned yet, as a JSON array.  Whoever joins has the turn at every shard, so no
-- other one takes them at the same time.  A slot that was here once is left as it is.
INSERT INTO tl_slot (slot, state, reason)
SELECT j.slot, 'owned', :reason
FROM JSON_TABLE(:slots, '$[*]' COLUMNS (slot SMALLINT UNSIGNED PATH '$')) j
ON DUPLICATE KEY UPDATE slot = tl_slot.slot
