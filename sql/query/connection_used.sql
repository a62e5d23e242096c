-- The id of the connection that holds this name; NULL means that it is gone and that the rollback
-- of whatever it was doing is finished.
SELECT IS_USED_LOCK(:name)
