-- How many rows the last purge_acts.sql of this connection removed.
SELECT @tl_purged_acts
