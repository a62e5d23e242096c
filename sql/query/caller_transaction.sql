-- The caller's connection: is it in a transaction, will the next statement begin one otherwise, and
-- does the server end a silent one?  Reading variables begins none.
SELECT @@in_transaction AS in_transaction, @@autocommit AS autocommit,
    @@idle_transaction_timeout AS idle_transaction_s
