-- After a restore "nothing was sent" is not known of anything any more: every queued row
-- becomes one in doubt, whose send may be under way for one max_hold.  So does one that
-- is held: its holder, dead or alive, may have armed and sent in what was lost; a living one
-- is fenced out.  Walks the table, once, by an operator's decision.
UPDATE trade_lock
SET step = 'restored', sends = 1,
    send_until = UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND,
    token = RANDOM_BYTES(16), fence = fence + 1, rev = rev + 1, thread_no = ?, actor = ?,
    remark = ?, updated_at = UTC_TIMESTAMP(6)
WHERE lane = 'S' AND status = 'P' AND sends = 0
