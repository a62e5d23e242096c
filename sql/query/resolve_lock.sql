-- A decision first locks both rows, sync row before retry row.  So no holder, janitor or evidence
-- changes them between what is read and what is written.
SELECT s.status, s.epoch, s.fence, s.rev, s.conflict, s.session_id IS NOT NULL,
    s.success_epoch <=> s.epoch, COALESCE(s.send_until > UTC_TIMESTAMP(6), 0),
    COALESCE(r.status = 'F' AND r.epoch = s.epoch
        AND (r.next_run_at IS NOT NULL OR r.parked IS NOT NULL), 0)
FROM trade_lock s
LEFT JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
    AND r.op_code = :retry_op
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code AND s.lane = 'S'
FOR UPDATE
