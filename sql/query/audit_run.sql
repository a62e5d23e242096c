-- The head of an audit: who audits, which server, and when.
SELECT CURRENT_USER(), CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
