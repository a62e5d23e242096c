-- Whether this account may change the log; the server checks the right and finds that no
-- row can match.
UPDATE trade_lock_log SET remark = remark WHERE FALSE
