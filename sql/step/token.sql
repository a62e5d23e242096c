-- name: token_now
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

-- name: token_seen
-- Whether a step with this token was ever committed.
SELECT tl_token_seen(:cust_no, :serial_no, :op_code, :token)

-- name: tokens_seen
-- Which of these steps were committed, whatever became of their rows since.  It is for a statement
-- of many steps that changed fewer rows than all of the steps would.
SELECT j.token
FROM (SELECT cust_no, serial_no, op_code,
        token
    FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(:cust_no, :serial_no, :op_code, :token)/*)rows*/) j
STRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON s.cust_no = j.cust_no
    AND s.serial_no = j.serial_no AND s.op_code = j.op_code
WHERE s.token = j.token OR tl_token_seen(j.cust_no, j.serial_no, j.op_code, j.token)

-- name: views_by_key
-- As view_by_key, for many keys.  The first SELECT gives the keys their names and types, so that
-- each row is found by its primary key.  A table that seems empty is read whole, without a lock.
-- The last column says whether evidence or decisions are on file about the trade, so that a worker
-- need not ask for each.  Of several only the first is joined, the one that none is before, since
-- each row carries the payload.
SELECT /*include view_columns*/,
    filed_id IS NOT NULL OR decided_rev IS NOT NULL AS on_file
FROM (SELECT cust_no, serial_no, op_code FROM trade_lock WHERE FALSE
    UNION ALL VALUES /*rows(*/(:cust_no, :serial_no, :op_code)/*)rows*/) k
STRAIGHT_JOIN trade_lock_state USING (cust_no, serial_no, op_code)
LEFT JOIN (SELECT cust_no AS filed_cust, serial_no AS filed_serial, op_code AS filed_op,
        evidence_id AS filed_id
    FROM trade_evidence) e
    ON filed_cust = cust_no AND filed_serial = serial_no AND filed_op = op_code
LEFT JOIN (SELECT cust_no AS before_cust, serial_no AS before_serial, op_code AS before_op,
        evidence_id AS before_id
    FROM trade_evidence) f
    ON before_cust = filed_cust AND before_serial = filed_serial AND before_op = filed_op
        AND before_id < filed_id
LEFT JOIN (SELECT cust_no AS decided_cust, serial_no AS decided_serial, op_code AS decided_op,
        rev AS decided_rev, verdict AS decided, part AS decided_part
    FROM trade_resolution) d
    ON decided_cust = cust_no AND decided_serial = serial_no AND decided_op = op_code
LEFT JOIN (SELECT cust_no AS older_cust, serial_no AS older_serial, op_code AS older_op,
        rev AS older_rev, verdict AS older, part AS older_part
    FROM trade_resolution) p
    ON older_cust = decided_cust AND older_serial = decided_serial AND older_op = decided_op
        AND (older_rev, older, older_part) < (decided_rev, decided, decided_part)
WHERE before_id IS NULL AND older_rev IS NULL
