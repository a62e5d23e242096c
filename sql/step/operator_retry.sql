-- An operator makes a waiting or parked lane due now, or opens the lane of a holder that died. The
-- procedure decides by the fence that was seen, and commits both rows together
-- (sql/object/operator.sql).
CALL tl_operator_retry(:cust_no, :serial_no, :op_code, :held_fence, :thread_no, :log_no, :token,
    :actor, :remark)
