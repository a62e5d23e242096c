-- The holder gives the sync row back without a final answer: the row loses its holder and stays P.
-- A send that provably did nothing is taken off again, and so is what it added to send_until,
-- unless the row counts a send that the holder does not know of.  A repeatable trade has no retry
-- row by which it could be found, so it stands at a moment that is never due.
--
-- open_now: both rows in one request and one commit.  The answer comes after the commit and counts
-- the rows of both.
form open: one row, alone
form open_now: one row, alone; then open_lane
form open_many: one row, many

UPDATE s
SET s.step = :name,
    s.session_id = NULL,
    s.max_hold_until = NULL,
    s.next_run_at = IF(s.repeatable = 1 AND s.lane = 'S', '1970-01-01', NULL),
    s.thread_no = :thread_no,
    s.log_no = :log_no,
    s.token = :token,
    s.fence = s.fence + 1,
    s.rev = s.rev + 1,
    s.send_until = IF(s.sends = :known_sends,
        TIMESTAMP'1970-01-01 00:00:00' + INTERVAL NULLIF(:send_before_us, 0) MICROSECOND,
        s.send_until),
    s.sends = IF(:unsend AND s.sends > 0, s.sends - 1, s.sends),
    s.seen_by_channel = s.seen_by_channel OR :seen_by_channel,
    s.cancel_tried = s.cancel_tried OR :cancel_tried,
    s.not_found_since = CASE :not_found WHEN 1 THEN COALESCE(s.not_found_since, UTC_TIMESTAMP(6))
        WHEN 2 THEN NULL ELSE s.not_found_since END,
    s.channel_ref = COALESCE(:channel_ref, s.channel_ref),
    s.remark = COALESCE(:remark, s.remark),
    s.actor = :actor,
    s.updated_at = UTC_TIMESTAMP(6)
WHERE s.status = 'P'
    AND s.fence = :held_fence                                   -- rule fence
    AND s.token = :held_token                                   -- rule token
