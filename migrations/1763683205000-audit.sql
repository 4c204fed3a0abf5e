-- What happened, written in the transaction of the change it records. No foreign keys: history outlives people.
CREATE TABLE audit_events (
  id         uuid        PRIMARY KEY,
  type       text        NOT NULL,
  class      text        NOT NULL CHECK (class IN ('auth', 'oauth', 'admin')),
  actor_id   uuid,
  subject_id uuid,
  org_id     uuid,
  request_id text,
  ip         inet,
  user_agent text,
  details    jsonb       NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_events_org ON audit_events (org_id, id);
CREATE INDEX audit_events_subject ON audit_events (subject_id, id);
CREATE INDEX audit_events_class ON audit_events (class, created_at);
