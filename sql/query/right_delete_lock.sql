-- Whether this account may remove locks; no row can match.
DELETE FROM trade_lock WHERE FALSE
