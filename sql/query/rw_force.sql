-- An operator frees a holder behind the gate; the procedure decides, and notes the act.
CALL tl_rw_force(:resource, :slot, :seen_fence, :thread_no, :log_no, :token, :actor, :remark)
