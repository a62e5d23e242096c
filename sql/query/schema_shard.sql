-- Which shard of which fleet this database is.  It never changes once it is written, so whoever read
-- it on a connection knows it for as long as that lasts.
SELECT fleet, shard FROM tl_schema WHERE one = 1
