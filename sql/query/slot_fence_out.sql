-- Repeatable trades of a customer whose holders are dead: nothing of them changes any more after
-- this, since a late ending finds another fence.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET step = 'moved', thread_no = :thread_no, log_no = NULL, token = RANDOM_BYTES(16),
    session_id = NULL, max_hold_until = NULL, fence = fence + 1, rev = rev + 1, actor = :actor,
    updated_at = UTC_TIMESTAMP(6)
WHERE cust_no = :cust_no AND repeatable = 1 AND status = 'P' AND session_id IS NOT NULL
