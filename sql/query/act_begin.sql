-- Begins an act of an operator; the procedure says under whose name.
CALL tl_act_begin(:what, :said, :reason, :actor, :log_no, :planned, @tl_act)
