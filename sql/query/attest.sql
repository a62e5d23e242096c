-- What a session found on a promoted server; see the procedure.
CALL tl_attest(:number, :session_id, :missing, :kept)
