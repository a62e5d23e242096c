-- Whether a step with this token is the row's last one, and what it is worth: the row's status, and
-- whether its session still lives.  That is read by a join, since an EXISTS that KILL QUERY
-- interrupts says no instead of an error.
SELECT TRUE
    AND t.token = :token                                        -- rule token
    AS mine, t.status, t.fence, t.epoch,
    x.session_id IS NOT NULL AS session_lives, t.session_id <=> :session_id AS my_session
FROM trade_lock t
LEFT JOIN tl_session x ON x.session_id = t.session_id AND x.ended_at IS NULL
WHERE t.cust_no = :cust_no AND t.serial_no = :serial_no AND t.op_code = :op_code
