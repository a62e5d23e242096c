-- Which schema this is, and the oldest client that it serves.
SELECT version, oldest_client FROM tl_schema WHERE one = 1
