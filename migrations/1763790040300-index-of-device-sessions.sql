-- background
CREATE INDEX CONCURRENTLY sessions_of_device ON sessions (user_id) WHERE of_device;
