-- Whether this account may write lock rows, as services do; no row can match.
UPDATE trade_lock SET remark = remark WHERE FALSE
