-- A process begins.
INSERT INTO tl_session (session_id, program, host, pid, operations, connection_name,
    timeout_ms, boot_id, clock_us, clock_least_us, clock_most_us, clock_steps, obeys, started_at,
    alive_until)
VALUES (:session_id, :program, :host, :pid, :operations, :connection_name, :timeout_ms,
    :boot_id, :clock_us, :clock_least_us, :clock_most_us, :clock_steps, 'pause limit breaker',
    UTC_TIMESTAMP(6),
    UTC_TIMESTAMP(6) + INTERVAL :timeout_ms * 1000 MICROSECOND)
