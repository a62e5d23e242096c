-- How long a migration waits for those who use a table, in seconds.
SET SESSION lock_wait_timeout = :wait_s
