-- The same for readers and writers, see restore_resources.sql.  The next grant's fence is
-- above the highest of the resource.
UPDATE resource_holder
SET status = 'F', step = 'restored', thread_no = ?, log_no = NULL, session_id = NULL,
    token = RANDOM_BYTES(16),
    fence = GREATEST(fence,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) + 1,
    rev = rev + 1, over_at = NULL, max_hold_until = NULL, remark = ?, actor = ?,
    released_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6)
