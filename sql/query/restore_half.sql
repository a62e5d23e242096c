-- Appends one half of accepting: proposed, or confirmed.  The server tells whose it is: the column
-- `account` has CURRENT_USER() as its default, and operators have no right to write it.
INSERT INTO tl_restore (restore_no, step, reason, actor) VALUES (:number, :half, :reason, :actor)
