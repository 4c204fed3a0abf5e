-- background
CREATE INDEX CONCURRENTLY logout_notices_due ON logout_notices (self_registered, next_attempt_at) WHERE dead_at IS NULL;
