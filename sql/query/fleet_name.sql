-- Makes the database a shard, once its triggers are there.
UPDATE tl_schema SET fleet = :fleet, shard = :shard WHERE one = 1
