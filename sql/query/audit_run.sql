-- Who audits, which server, and when: what stands at the head of an audit.
SELECT CURRENT_USER(), CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
