-- One page of settling a step of the clock; the procedure decides and commits by itself.
CALL tl_clock_settle(:most, :thread_no, :actor, @tl_clock_settled)
