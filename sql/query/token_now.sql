-- Whether a step with this token is the row's last one, and what it is worth: the row's
-- status, and whether the session that it was made under still lives.
SELECT t.token = ? AS mine, t.status, t.fence, t.epoch,
    t.session_id IS NOT NULL AND EXISTS (SELECT 1 FROM tl_session x
        WHERE x.session_id = t.session_id AND x.ended_at IS NULL) AS session_lives,
    t.session_id <=> ? AS my_session
FROM trade_lock t
WHERE t.cust_no = ? AND t.serial_no = ? AND t.op_code = ?
