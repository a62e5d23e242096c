-- Whether this account may remove rows of the log; no row can match.
DELETE FROM trade_lock_log WHERE FALSE
