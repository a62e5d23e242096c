-- The holder gives the trade back: both rows in one request and one commit.  The second statement
-- finds the sync row by the token that the first one wrote, so it does nothing where the first did
-- nothing.  An error undoes both; some pass the handler by, so that the library rolls back after
-- any.  The answer counts the rows of both, and comes after the commit.
BEGIN NOT ATOMIC
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
/*include open_held*/;
/*include open_retry*/;
    COMMIT;
END
