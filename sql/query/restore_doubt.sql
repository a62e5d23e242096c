-- After a restore neither "nothing was sent" nor "it was sent once" is known of anything any
-- more: every trade in process is one in doubt that was sent for once more than is recorded,
-- and whose last send may be under way for one max_hold; a "no such payment" of earlier does
-- not count.  That goes for one that is held, too: its holder, dead or alive, may have
-- armed and sent in what was lost.  A living holder that has nothing sent yet, as far as is
-- known, is fenced out; one that has may still say what came of it.
-- Walks the table, once, by an operator's decision.
UPDATE trade_lock
SET step = 'restored', fence = fence + IF(sends = 0, 1, 0),
    token = IF(sends = 0, RANDOM_BYTES(16), token), sends = sends + 1,
    send_until = GREATEST(COALESCE(send_until, UTC_TIMESTAMP(6)),
        UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND),
    not_found_since = NULL, rev = rev + 1, thread_no = ?, actor = ?, remark = ?,
    updated_at = UTC_TIMESTAMP(6)
WHERE lane = 'S' AND status = 'P' AND repeatable = 0
