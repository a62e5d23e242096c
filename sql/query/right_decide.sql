-- Whether this account may decide about trades; no row is made.
INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch,
    reason, actor, thread_no, log_no, although_pending)
SELECT '', '', '', 0, 'C', 1, 0, 0, '', '', NULL, NULL, 0 FROM DUAL WHERE FALSE
