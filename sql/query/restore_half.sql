-- One half of accepting: proposed, or confirmed.  Who it is the server says: the column `account`
-- has CURRENT_USER() as its default, and operators have no right to write it.
INSERT INTO tl_restore (restore_no, step, reason, actor) VALUES (:number, :half, :reason, :actor)
