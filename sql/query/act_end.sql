-- Ends an act; a second time it does nothing.
CALL tl_act_end(:act_no, :counts)
