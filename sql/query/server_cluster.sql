-- Whether this server has its rows in common with others that take writes (Galera): what is written
-- down here all of them read at once.
SELECT COUNT(*) FROM information_schema.global_variables
WHERE variable_name = 'WSREP_ON' AND variable_value = 'ON'
