-- Sessions that are silent for longer than their time-out and that nobody has ended.
SELECT COUNT(*), MAX(TIMESTAMPDIFF(SECOND, alive_until, UTC_TIMESTAMP(6)))
FROM tl_session FORCE INDEX (to_sweep)
WHERE swept_at IS NULL AND ended_at IS NULL AND alive_until < UTC_TIMESTAMP(6)
