-- Locks the gate, so that one grant for a resource is made at a time: what is read next stays true
-- until this transaction ends.  Such transactions are short, so the lock is waited for, for a
-- moment.
SELECT resource FROM rw_lock WHERE resource = :resource FOR UPDATE WAIT 2
