-- An observer opens a dead holder's trade: both rows in one request and one commit, as open_now
-- does for a living one.
BEGIN NOT ATOMIC
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
/*include open_dead*/;
/*include open_retry*/;
    COMMIT;
END
