-- How many sessions the last purge_sessions.sql of this connection removed.
SELECT @tl_purged_sessions
