-- background
-- `sessions_key` is the same: both are on the security key that opened the session, where there is one.
DROP INDEX CONCURRENTLY IF EXISTS sessions_authenticator;
