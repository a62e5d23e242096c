-- What an ask does to a repeatable row that is there.  It takes the row over if the row is
-- finished or without a holder.  It leaves a holder's row exactly as it is, and also a trade that
-- happens once, whatever its status. Neither sessions nor the clock are looked at here: a subquery
-- of an INSERT would lock the holder's session row, and delay its heartbeat, and the clock may have
-- been set.  A caller that was refused reads the row.  If the holder is dead or overdue, the caller
-- asks again, alone, with the fence that it saw.  Such rows are not on the due index: they have no
-- retry lane, and no janitor opens them.
UPDATE s
SET s.status = 'P',
    s.step = 'reask',
    s.thread_no = :thread_no,
    s.log_no = :log_no,
    s.session_id = :session_id,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.epoch = s.epoch + 1,
    s.sends = :sends,
    s.proof = '-',
    s.result = NULL,
    s.next_run_at = NULL,
    s.max_hold_until = UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    s.send_until = IF(:sends > 0,
        UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND, NULL),
    s.fingerprint = :fingerprint,
    s.payload = :payload,
    s.remark = :remark,
    s.actor = :actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.repeatable = 1
    AND (s.status = 'F' OR (s.status = 'Y' AND s.lane = 'S')
        OR (s.status = 'P' AND (s.session_id IS NULL
            OR s.fence = :held_fence                -- alone
        )))
