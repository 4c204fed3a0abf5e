-- background
-- Each class has its partitions, so that an index by class is one by time. The clean-up finds expired events by their day, which
-- `audit_log_of_request_day` begins with. The heartbeat looks for the latest acts of operators, and a failover for the events of the last
-- hour, which are near each other on the disk. A B-tree of all times is not made: PostgreSQL would read it to the end in a search for an
-- event that does not exist, if most administrative events have one type or address.
CREATE INDEX CONCURRENTLY audit_log_of_operators ON audit_events_admin (created_at) WHERE details ->> 'by' = 'operator';
CREATE INDEX CONCURRENTLY audit_log_of_admin_range ON audit_events_admin USING brin (created_at) WITH (autosummarize = on);
DROP INDEX CONCURRENTLY IF EXISTS audit_log_of_class;
