-- All migrations up to this one are applied, and all schema objects are made.  The retention rises to
-- the setting; only an administrator lowers it, by an UPDATE.
UPDATE tl_schema SET version = GREATEST(version, :version),
    retention_ms = GREATEST(retention_ms, :retention_ms) WHERE one = 1
