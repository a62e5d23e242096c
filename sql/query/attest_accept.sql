-- Accepts a promoted server by itself, if nothing is missing there; see the procedure.
CALL tl_accept_proved(:number)
