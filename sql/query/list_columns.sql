-- The first columns of every page of a list (admin/statements.h).  If the revisions of a row's
-- first and last step are not neighbours, history keeps steps between them.
cust_no, serial_no, op_code, lane, status, conflict, parked IS NOT NULL AS is_parked,
    TIMESTAMPDIFF(MICROSECOND, updated_at, UTC_TIMESTAMP(6)) DIV 1000 AS age_ms,
    log_no, first_log_no, (rev <= first_rev + 1) IS NOT TRUE AS has_past
