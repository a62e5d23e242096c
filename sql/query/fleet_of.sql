-- Of which fleet this database is a shard, of what name (NULL: of none), and which installation.
SELECT fleet, shard, CAST(installation AS CHAR) FROM tl_schema WHERE one = 1
