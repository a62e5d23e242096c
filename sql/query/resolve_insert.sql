-- Appends one half of a decision.  The server tells whose it is: the column `account` has
-- CURRENT_USER() as its default, and operators have no right to write it.  The trigger of the
-- second half also changes the rows, and fails if they are not as both operators saw them.
INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch,
    reason, actor, thread_no, log_no, although_pending)
VALUES (:cust_no, :serial_no, :op_code, :rev, :verdict, :part, :fence, :epoch, :reason, :actor,
    :thread_no, :log_no, :although_pending)
