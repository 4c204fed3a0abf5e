-- background
-- The log of the service gets each checkpoint once. While the object store is away, those that it has got would be read again in each
-- round: one a minute of each organization that works.
CREATE INDEX CONCURRENTLY audit_checkpoints_to_log ON audit_checkpoints (signed_at) WHERE published_at IS NULL AND logged_at IS NULL;
