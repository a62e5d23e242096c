-- The site of all channel keys; '': no session has begun yet.
SELECT COALESCE(site, '') FROM tl_schema WHERE one = 1
