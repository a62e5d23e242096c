-- What every page of a list begins with (admin/statements.h).  Between its first step and its last a
-- row has others, which history keeps, where their revisions are not neighbours.
cust_no, serial_no, op_code, lane, status, conflict, parked IS NOT NULL AS is_parked,
    TIMESTAMPDIFF(MICROSECOND, updated_at, UTC_TIMESTAMP(6)) DIV 1000 AS age_ms,
    log_no, first_log_no, (rev <= first_rev + 1) IS NOT TRUE AS has_past
