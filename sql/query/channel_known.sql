-- Makes a channel and its operation known, so that operators can pause it.  A row that is there
-- stays as it is: nothing else is named.
INSERT IGNORE INTO trade_channel (channel, op_code) VALUES (:channel, :op_code)
