-- From now on nothing is granted or armed on this database; the lane only asks.
UPDATE tl_schema SET restored_at = UTC_TIMESTAMP(6) WHERE one = 1
