-- An operator takes a lock away; the procedure decides, and notes the act.
CALL tl_resource_force(:resource, :seen_fence, :thread_no, :log_no, :token, :actor, :remark)
