-- How long a migration waits, in seconds, while others use a table.
SET SESSION lock_wait_timeout = :wait_s
