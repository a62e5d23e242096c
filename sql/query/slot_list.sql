-- Which slots this database has or had: 1024 rows at most.
SELECT slot, state, version, other, sealed,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', changed_at), account, reason
FROM tl_slot FORCE INDEX (PRIMARY)
ORDER BY slot
