-- The id of the connection that has this name.  NULL: the connection is gone, and what it was doing
-- is rolled back.
SELECT IS_USED_LOCK(:name)
