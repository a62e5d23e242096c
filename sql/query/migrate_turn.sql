-- One migrating process at a time in each database; the lock ends with its connection.
SELECT GET_LOCK(CONCAT('tl:migrate:', MD5(DATABASE())), :wait_s)
