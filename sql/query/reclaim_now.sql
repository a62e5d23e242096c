-- A reclaim that names no fence, and the row after it, as claim_now does.
BEGIN NOT ATOMIC
/*include ask_reclaim*/;
    BEGIN
        DECLARE EXIT HANDLER FOR SQLEXCEPTION
            SIGNAL SQLSTATE 'HY000'
                SET MYSQL_ERRNO = 1180, MESSAGE_TEXT = 'the row could not be read';
/*include view_by_key*/;
    END;
END
