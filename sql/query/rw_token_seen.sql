-- Whether a step with this token was committed and superseded since.
SELECT tl_holder_token_seen(:resource, :slot, :token)
