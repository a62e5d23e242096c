-- Three questions about a caller's connection: is it in a transaction, else does the next statement
-- begin one, and does the server end a silent one?  Reading variables begins no transaction.
SELECT @@in_transaction AS in_transaction, @@autocommit AS autocommit,
    @@idle_transaction_timeout AS idle_transaction_s
