-- Whether this account may write what a request says of its amount; no row can match.
UPDATE trade_lock SET amount_minor = amount_minor, currency = currency WHERE FALSE
