-- The moment itself, in UTC.  UTC_TIMESTAMP(6) is the one at which the statement began, perhaps long
-- before it got a row that others had.
CREATE OR REPLACE FUNCTION tl_moment()
RETURNS DATETIME(6) NOT DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN SYSDATE(6) + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND;

-- Refuses a session that has bent what definers' code rests on.  insert_id would use up the numbers
-- of a table, check_constraint_checks let a row in that no constraint would, and a temporary table
-- stand in for ours in all code that the session calls.  A service takes another session then.
CREATE OR REPLACE PROCEDURE tl_guard()
READS SQL DATA SQL SECURITY DEFINER
BEGIN
    IF COALESCE(@@insert_id <> 0 OR NOT @@check_constraint_checks, 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005,
            MESSAGE_TEXT = 'this session has set insert_id or check_constraint_checks';
    END IF;
    IF COALESCE((SELECT variable_value FROM information_schema.session_status
        WHERE variable_name = 'COM_CREATE_TEMPORARY_TABLE') <> '0', 1) THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 31005,
            MESSAGE_TEXT = 'this session has made a temporary table, which may stand in for ours';
    END IF;
END;
