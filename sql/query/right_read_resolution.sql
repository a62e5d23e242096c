-- Whether this account may look what operators decided, as every ending of a compensating
-- attempt does; no row can match.
SELECT 1 FROM trade_resolution WHERE FALSE
