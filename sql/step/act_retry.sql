-- As operator_retry.sql, as a row of an act: who and why are the act's, and what became of the row
-- is on record in the same transaction.
CALL tl_act_retry(:act_no, :act_row, :cust_no, :serial_no, :op_code, :held_fence, :thread_no,
    :token)
