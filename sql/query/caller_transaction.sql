-- Questions about a caller's connection: is it in a transaction, else does the next statement begin
-- one, does the server end a silent one, and which server is it, as tl_identity() says?  Reading variables begins no transaction.
SELECT @@in_transaction AS in_transaction, @@autocommit AS autocommit,
    @@idle_transaction_timeout AS idle_transaction_s,
    CONCAT_WS(' ', @@hostname, @@server_id, @@datadir) AS identity
