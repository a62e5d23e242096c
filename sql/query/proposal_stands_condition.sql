-- Whether the half d of a decision is a proposal that a second operator may confirm: its trade t is
-- as it was seen.  Whatever changes a trade raises its revision, a confirmation too.
d.part = 1 AND t.cust_no = d.cust_no AND t.serial_no = d.serial_no AND t.op_code = d.op_code
    AND t.rev = d.rev
