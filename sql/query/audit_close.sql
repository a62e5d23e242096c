-- Appends one half of closing a finding.  The server tells who wrote it, and a trigger refuses a
-- second half by the writer of the first.
INSERT INTO audit_closing (finding, part, rule, cust_no, serial_no, op_code, rev, reason,
    actor, thread_no)
VALUES (:finding, :part, :rule, :cust_no, :serial_no, :op_code, :rev, :reason, :actor, :thread_no)
