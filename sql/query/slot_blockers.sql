-- What is in the way of a hand-over, of these customers: trades in process; repeatable ones that
-- somebody may hold; lanes that wait or are parked; decisions that are proposed.  Holders that are
-- dead hold nothing; the next step takes their rows from them (slot_fence_out.sql).
SELECT t.cust_no, t.serial_no, t.op_code,
    CASE WHEN t.lane = 'R' AND t.repeatable = 0 AND t.parked IS NOT NULL THEN 'parked'
        WHEN t.lane = 'R' AND t.repeatable = 0 THEN 'waiting'
        WHEN t.status = 'P' THEN 'in process'
        ELSE 'proposed' END
FROM JSON_TABLE(:customers, '$[*]' COLUMNS (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$')) m
STRAIGHT_JOIN trade_lock t FORCE INDEX (PRIMARY) ON t.cust_no = m.cust_no
LEFT JOIN trade_resolution d ON d.part = 1 AND t.cust_no = d.cust_no
    AND t.serial_no = d.serial_no AND t.op_code = d.op_code AND t.rev = d.rev
LEFT JOIN tl_session x ON x.session_id = t.session_id AND x.ended_at IS NULL
WHERE (t.repeatable = 0 AND (t.status = 'P' OR t.parked IS NOT NULL
        OR (t.lane = 'R' AND t.next_run_at IS NOT NULL)))
    OR (t.repeatable = 1 AND t.status = 'P' AND x.session_id IS NOT NULL
        AND t.max_hold_until > UTC_TIMESTAMP(6))
    OR d.rev IS NOT NULL
LIMIT 100
