-- Every search of the audit log has an index that has its equalities first and then its order, so that a page reads as many rows
-- as it shows: by type; by user, as the subject or, beside that, as the actor; by an address that the event itself names.
CREATE INDEX audit_events_org_type ON audit_events (org_id, type, created_at DESC, id DESC);
CREATE INDEX audit_events_subject_time ON audit_events (subject_id, created_at DESC, id DESC) WHERE subject_id IS NOT NULL;
CREATE INDEX audit_events_actor_time ON audit_events (actor_id, created_at DESC, id DESC)
  WHERE actor_id IS NOT NULL AND actor_id IS DISTINCT FROM subject_id;
CREATE INDEX audit_events_org_email ON audit_events (org_id, (details ->> 'email'), created_at DESC, id DESC)
  WHERE details ? 'email';
-- No statement uses it any more.
DROP INDEX audit_events_subject;
