-- The console searches the audit log by the address that a user had, by application, by key, by network address and by request. Each
-- index has its equalities first and then the order of the log, so that a page reads about as many events as it shows.
CREATE INDEX audit_events_subject_email ON audit_events (org_id, subject_email, created_at DESC, id DESC)
  WHERE subject_email IS NOT NULL;
CREATE INDEX audit_events_actor_email ON audit_events (org_id, actor_email, created_at DESC, id DESC)
  WHERE actor_email IS NOT NULL AND actor_email IS DISTINCT FROM subject_email;
CREATE INDEX audit_events_client ON audit_events (org_id, (details ->> 'client_id'), created_at DESC, id DESC)
  WHERE details ? 'client_id';
CREATE INDEX audit_events_application ON audit_events (org_id, (details ->> 'application_id'), created_at DESC, id DESC)
  WHERE details ? 'application_id';
CREATE INDEX audit_events_client_name ON audit_events (org_id, lower(client_name), created_at DESC, id DESC)
  WHERE client_name IS NOT NULL;
-- In the event of an SSH certificate `key_id` is the identity in the certificate, which is no security key.
CREATE INDEX audit_events_key ON audit_events (org_id, (details ->> 'key_id'), created_at DESC, id DESC)
  WHERE details ? 'key_id' AND type <> 'ssh_credential';
CREATE INDEX audit_events_model ON audit_events (org_id, (details ->> 'aaguid'), created_at DESC, id DESC)
  WHERE details ? 'aaguid';
CREATE INDEX audit_events_ip ON audit_events (org_id, ip, created_at DESC, id DESC) WHERE ip IS NOT NULL;
CREATE INDEX audit_events_request ON audit_events (org_id, request_id, created_at DESC, id DESC)
  WHERE request_id IS NOT NULL;

-- Questions to the audit log that admins of an organization keep under a name: the filters as the page has them.
CREATE TABLE saved_questions (
  id         uuid        PRIMARY KEY,
  org_id     uuid        NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
  name       text        NOT NULL,
  filters    jsonb       NOT NULL,
  created_by uuid        NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX saved_questions_org ON saved_questions (org_id, created_at, id);
