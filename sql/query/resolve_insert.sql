-- One half of a decision, appended.  Who it is the server says: the column `account` has
-- CURRENT_USER() as its default, and operators have no right to write it.  The second half changes
-- the rows too, by its trigger, and fails when they are not as both saw them.
INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch,
    reason, actor, thread_no, log_no, although_pending)
VALUES (:cust_no, :serial_no, :op_code, :rev, :verdict, :part, :fence, :epoch, :reason, :actor,
    :thread_no, :log_no, :although_pending)
