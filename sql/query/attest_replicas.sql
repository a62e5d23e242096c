-- The servers that read this one's log: the first column is the id of each.
CALL tl_replicas()
