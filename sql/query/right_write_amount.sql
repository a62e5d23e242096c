-- Whether this account may write what a request says of itself; no row can match.
UPDATE trade_lock SET amount_minor = amount_minor, currency = currency, batch = batch,
    traceparent = traceparent
WHERE FALSE
