-- One half of a decision, appended.  Who it is the server says: the column `account` has
-- CURRENT_USER() as its default, and operators have no right to write it.
INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch,
    reason, actor, thread_no)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
