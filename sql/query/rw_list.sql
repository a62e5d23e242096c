-- A page of holders in the order of their resources, after the one named.
SELECT resource, slot, kind, state, step, by_session, fence, rev, thread_no, log_no,
    session_id, CONCAT(program, ' ', pid, '@', host) AS holder, remark, actor,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', acquired_at) AS acquired_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', done_at) AS done_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', released_at) AS released_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', over_at) AS over_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', max_hold_until) AS max_hold_until_us,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now_at) AS now_us
FROM resource_holder_state
WHERE resource >= :resource AND (resource > :resource OR slot > :slot)
ORDER BY resource, slot
LIMIT :most
