-- Events of one transaction keep their order: now() is the same for all of them.
ALTER TABLE audit_events ALTER COLUMN created_at SET DEFAULT clock_timestamp();
