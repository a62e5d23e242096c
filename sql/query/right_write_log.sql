-- Whether this account may change history; the server checks the right and finds that no row can
-- match.
UPDATE trade_lock_past SET remark = remark WHERE FALSE
