-- The columns of every page of a list (admin/statements.h), before those that say where a row
-- stands.  `passes`: whether the row as it is passes the filter, of which '', 0 and -1 stand for
-- whatever is not asked for; and whether it was there at the moment that is asked for.
-- If the revisions of its first and last step are not neighbours, steps between them may be of the
-- log UUID.
cust_no, serial_no, op_code, status, rev,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', logged_at) AS logged_us,
    ((:cust = '' OR cust_no = :cust) AND (:op = '' OR op_code IN (:op, :retry_op))
        AND (:lane = '' OR lane = :lane) AND (:status = '' OR status = :status)
        AND (:channel = '' OR channel = :channel) AND (:batch = '' OR batch = :batch)
        AND (:channel_ref = '' OR channel_ref = :channel_ref)
        AND (:log_no = '' OR log_no = :log_no OR first_log_no = :log_no
            OR (rev <= first_rev + 1) IS NOT TRUE)
        AND (:amount_over < 0 OR amount_minor > :amount_over)
        AND created_at >= CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :since_us MICROSECOND
        AND created_at < CAST('1970-01-01' AS DATETIME(6)) + INTERVAL :until_us MICROSECOND
        AND (:as_of_us = 0 OR first_logged_at <= CAST('1970-01-01' AS DATETIME(6))
            + INTERVAL :as_of_us MICROSECOND)
        AND (:older_ms = 0
            OR created_at <= UTC_TIMESTAMP(6) - INTERVAL :older_ms * 1000 MICROSECOND)
        AND (:idle_ms = 0
            OR updated_at <= UTC_TIMESTAMP(6) - INTERVAL :idle_ms * 1000 MICROSECOND)) IS TRUE
    AS passes
