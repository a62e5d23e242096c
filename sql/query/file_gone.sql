-- Makes the trade of a holder whose row is gone.  Nobody removes a row in process, so this one was
-- lost in a restore, and money may have moved.  The trade is in process again, without a holder, in
-- doubt, with what the holder knew.  Its deadline is over, so nothing is sent for it any more: how
-- long the channel remembers its key is not known here.  open_lane makes its lane due in the same
-- transaction.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
    token, fence, rev, epoch, sends, send_until, seen_by_channel, success_epoch,
    deadline_at, exclusive, fingerprint, channel, channel_key, channel_ref, payload, amount_minor,
    currency, batch, traceparent, remark, created_at, updated_at)
VALUES (:cust_no, :serial_no, :op_code, 'S', 'P', 'filed', :thread_no, :log_no, :token,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), fence, :epoch, :sends,
    UTC_TIMESTAMP(6) + INTERVAL :hold_ms * 1000 MICROSECOND, :seen, :success_epoch,
        UTC_TIMESTAMP(6),
    :exclusive, :fingerprint, :channel, :channel_key, :channel_ref, :payload, :amount_minor,
    :currency, :batch, :traceparent, :remark, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
