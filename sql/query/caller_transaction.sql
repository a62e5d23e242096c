-- The caller's connection: is it in a transaction, or will the next statement begin one,
-- and does the server end a silent one?
SELECT @@in_transaction = 1 OR @@autocommit = 0 AS in_transaction,
    @@idle_transaction_timeout AS idle_transaction_s
