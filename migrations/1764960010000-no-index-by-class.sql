-- background
-- Each class has its partitions, so that an index by class is one by time. Only the latest administrative events are looked for by time
-- alone. The clean-up finds expired events by their day, which `audit_log_of_request_day` begins with.
CREATE INDEX CONCURRENTLY audit_log_of_admin_time ON audit_events_admin (created_at);
DROP INDEX CONCURRENTLY IF EXISTS audit_log_of_class;
