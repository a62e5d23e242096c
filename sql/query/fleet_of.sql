-- Of which fleet this database is a shard, and of what name; NULL: of none.
SELECT fleet, shard FROM tl_schema WHERE one = 1
