-- Which schema this is, and the oldest client it still serves.
SELECT version, oldest_client, server_identity FROM tl_schema WHERE one = 1
