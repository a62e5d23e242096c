-- Whether this account may read who decided what, as every ending of a compensating attempt does;
-- no row can match.
SELECT tl_account_name(account) FROM trade_resolution WHERE FALSE
