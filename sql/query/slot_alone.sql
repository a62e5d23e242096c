-- Lets one process at a time move a slot; the lock ends with its connection.
SELECT GET_LOCK(CONCAT('tl:slot:', :slot, ':', MD5(DATABASE())), 0)
