-- A claim by key, which commits by itself, and then the row, payload and evidence included: UPDATE
-- has no RETURNING.  Nothing is locked while the row is read and sent.  It carries our token where
-- the claim was made and nobody has gone on from there.  A row that cannot be read leaves open
-- whether it was claimed: the error says so (1180), and the token is looked for.
BEGIN NOT ATOMIC
/*include claim*/;
    BEGIN
        DECLARE EXIT HANDLER FOR SQLEXCEPTION
            SIGNAL SQLSTATE 'HY000'
                SET MYSQL_ERRNO = 1180, MESSAGE_TEXT = 'the row could not be read';
/*include view_by_key*/;
    END;
END
