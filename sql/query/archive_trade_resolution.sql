-- What operators decided about the trades that a page of a purge named, for an archive.
SELECT t.cust_no, t.serial_no, t.op_code, t.rev, t.verdict, t.part, t.fence, t.epoch, t.reason,
    t.actor, t.thread_no, t.account, t.decided_at, t.although_pending, t.log_no, t.worker
FROM JSON_TABLE(:named, '$[*]' COLUMNS (
    /*include named_columns*/)) n
STRAIGHT_JOIN trade_resolution t ON t.cust_no = n.cust_no AND t.serial_no = n.serial_no
    AND t.op_code = n.op_code
ORDER BY t.cust_no, t.serial_no, t.op_code, t.rev, t.verdict, t.part
