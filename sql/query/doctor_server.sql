-- Version, clock, and how this connection came.  NOW is the start of the statement, SYSDATE the
-- moment itself, unless the server was told to make them the same.  In that case history would
-- carry the time at which a statement began to wait.  VERSION() ends with "-log" where a log is on,
-- which tells servers of one version apart.
SELECT TRIM(TRAILING '-log' FROM VERSION()) AS version,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now_us,
    SLEEP(0.002) + TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) AS moved_us,
    p.host AS peer, s.variable_value AS cipher,
    CURRENT_USER() AS account, CURRENT_ROLE() AS role, DATABASE() AS name
FROM information_schema.processlist p
JOIN information_schema.session_status s ON s.variable_name = 'SSL_CIPHER'
WHERE p.id = CONNECTION_ID()
