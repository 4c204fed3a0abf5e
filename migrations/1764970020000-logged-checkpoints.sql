-- The time at which the checkpoint was written to the log of the service, which does not wait for the object store.
ALTER TABLE audit_checkpoints ADD COLUMN logged_at timestamptz;
