-- Whether this account may change what a row's first step was; the server checks the right and
-- finds that no row can match.
UPDATE trade_lock SET first_token = first_token WHERE FALSE
