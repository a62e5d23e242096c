-- Waits until this node of a Galera cluster has applied all that any node had answered before: a
-- commit that is on its way is not missing.
SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 1
