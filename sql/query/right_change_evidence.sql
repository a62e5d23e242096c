-- Whether this account may change evidence; no row can match.
UPDATE trade_evidence SET remark = remark WHERE FALSE
