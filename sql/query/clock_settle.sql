-- Adjusts one page of rows to a clock jump; the procedure decides and commits by itself.
CALL tl_clock_settle(:most, :thread_no, :actor, @tl_clock_settled)
