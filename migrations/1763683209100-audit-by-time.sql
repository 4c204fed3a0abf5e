-- What an organization's admins page through: its audit events, the newest first. The index by id, which nobody used, goes.
CREATE INDEX audit_events_org_time ON audit_events (org_id, created_at DESC, id DESC);
DROP INDEX audit_events_org;
