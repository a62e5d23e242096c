-- How many sessions that removed, on this connection.
SELECT @tl_purged_sessions
