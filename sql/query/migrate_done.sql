-- All migrations up to this one are applied, and all schema objects are made.
UPDATE tl_schema SET version = GREATEST(version, :version) WHERE one = 1
