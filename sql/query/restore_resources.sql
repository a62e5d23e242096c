-- After a restore nobody knows who held what in the hours that are lost: every lock is
-- taken from its holder, and every fence goes above all that can have been given since it
-- began with the server's microseconds.  Walks the table, once, by an operator's decision.
UPDATE resource_lock
SET status = 'U', step = 'restored', thread_no = ?, log_no = NULL, session_id = NULL,
    lease_until = NULL, max_hold_until = NULL, token = RANDOM_BYTES(16),
    fence = GREATEST(fence,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) + 1,
    rev = rev + 1, remark = ?, actor = ?, updated_at = UTC_TIMESTAMP(6)
