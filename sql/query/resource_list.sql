-- A page of resources in the order of their names, after the one named.
SELECT resource, state, status, step, fence, rev, thread_no, log_no, session_id,
    CONCAT(program, ' ', pid, '@', host) AS holder, remark, actor, payload,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', locked_at) AS locked_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', updated_at) AS updated_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at) AS now_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', lease_until) AS lease_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', max_hold_until) AS max_hold_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', free_at) AS free_us
FROM resource_lock_state
WHERE resource > :after
ORDER BY resource
LIMIT :most
