-- Whether this account may remove history; no row can match.
DELETE FROM trade_lock_past WHERE FALSE
