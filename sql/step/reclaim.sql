-- Tries a proven failure anew, as the next epoch with a new channel key.  The caller names the
-- epoch that it saw: of two reclaimers, one finds another epoch and is refused.  A caller that
-- asked the channel about the old keys also names the fence (0: any).  If operators or another
-- attempt have since made it another failure, nobody asked the channel about that one.  A trade
-- stays with the channel that its row names.
form reclaim: one row, alone
form reclaim_many: one row, many

UPDATE s
SET s.status = 'P',
    s.step = 'reclaim',
    s.thread_no = :thread_no,
    s.log_no = :log_no,
    s.session_id = :session_id,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.epoch = s.epoch + 1,
    s.sends = :sends,
    s.max_hold_until = UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
    s.send_until = IF(:sends > 0,
        UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND, NULL),
    s.next_run_at = GREATEST(UTC_TIMESTAMP(6) + INTERVAL :max_hold_ms * 1000 MICROSECOND,
        SYSDATE(6) + INTERVAL 5 SECOND),
    s.deadline_at = UTC_TIMESTAMP(6) + INTERVAL :deadline_ms * 1000 MICROSECOND,
    s.exclusive = :exclusive,
    s.channel_key = :channel_key,
    s.channel_ref = NULL,
    s.not_found_since = NULL,
    s.seen_by_channel = 0,
    s.cancel_tried = 0,
    s.retryable = 0,
    s.proof = '-',
    s.result = NULL,
    s.remark = :remark,
    s.actor = :actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'F' AND s.epoch = :reclaim_epoch
    AND (:reclaim_fence = 0 OR s.fence = :reclaim_fence)        -- rule fence
    AND s.retryable = 1 AND s.conflict = 0 AND s.repeatable = 0
    AND s.fingerprint <=> :fingerprint AND s.channel <=> :channel
