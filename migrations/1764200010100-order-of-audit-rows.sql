-- background
-- The order in which programs read the log.
CREATE INDEX CONCURRENTLY audit_events_place ON audit_events (org_id, epoch, xid, id);
