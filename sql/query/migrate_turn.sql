-- Lets one process at a time migrate a database; the lock ends with its connection.
SELECT GET_LOCK(CONCAT('tl:migrate:', MD5(DATABASE())), :wait_s)
