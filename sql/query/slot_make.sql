-- A slot that was never here arrives.  A row that is there already is an error.
INSERT INTO tl_slot (slot, state, version, other, tables, token, reason)
VALUES (:slot, 'arriving', :version, :other, :tables, :token, :reason)
