-- The oldest open transaction of this database that holds row locks: its connection, whose it is,
-- for how long in microseconds, and whether it commits where commits wait for a replica.
SELECT JSON_VALUE(o.said, '$[0]'), JSON_VALUE(o.said, '$[1]'), JSON_VALUE(o.said, '$[2]'),
    JSON_VALUE(o.said, '$[3]'), JSON_VALUE(o.said, '$[4]')
FROM (SELECT tl_oldest_transaction() AS said) o WHERE o.said IS NOT NULL
