-- Only one grant for a resource at a time: what is looked at next stays so until this transaction
-- ends.  Nobody keeps this lock for longer than that, so it is waited for, a moment.
SELECT resource FROM rw_lock WHERE resource = :resource FOR UPDATE WAIT 2
