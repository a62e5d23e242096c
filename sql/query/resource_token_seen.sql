-- Whether a step with this token was committed and superseded since.
SELECT tl_resource_token_seen(:resource, :token)
