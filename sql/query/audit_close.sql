-- One half of closing a finding, appended.  Who it is the server says, and its trigger refuses a
-- second half by whoever wrote the first.
INSERT INTO audit_closing (finding, part, rule, cust_no, serial_no, op_code, rev, reason,
    actor, thread_no)
VALUES (:finding, :part, :rule, :cust_no, :serial_no, :op_code, :rev, :reason, :actor, :thread_no)
