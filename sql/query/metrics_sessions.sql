-- Sessions that nobody has cleared up, by program and state: alive; silent for longer than their
-- time-out; or ended, and what they held is not all opened yet.
SELECT program, CASE
        WHEN ended_at IS NOT NULL THEN 'ended'
        WHEN alive_until < UTC_TIMESTAMP(6) THEN 'silent'
        ELSE 'alive'
    END AS state, COUNT(*)
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL
GROUP BY 1, 2
