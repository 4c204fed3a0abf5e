-- Shared Signals Framework 1.0: the applications that may receive signals, their streams, and the queue of events.

-- An admin allowed the application to have a stream. The end of the permission ends the stream.
CREATE TABLE signal_receivers (
  client_id      text        PRIMARY KEY REFERENCES oauth_clients (id) ON DELETE CASCADE,
  subject_format text        NOT NULL CHECK (subject_format IN ('iss_sub', 'email')),
  allowed_by     uuid,                                   -- no foreign key: the permission outlives the admin
  allowed_at     timestamptz NOT NULL DEFAULT now()
);

-- One stream for each application.
CREATE TABLE signal_streams (
  id                   uuid        PRIMARY KEY,
  client_id            text        NOT NULL UNIQUE REFERENCES signal_receivers (client_id) ON DELETE CASCADE,
  org_id               uuid        NOT NULL,
  method               text        NOT NULL CHECK (method IN ('push', 'poll')),
  endpoint_url         text,                             -- of push
  authorization_sealed text,                             -- the Authorization header of push, sealed under the root secret
  events_requested     text[],                           -- as the receiver wrote them; null: the default
  events               text[]      NOT NULL,             -- the types that are delivered
  description          text,
  status               text        NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'paused', 'disabled')),
  status_reason        text,
  verified_at          timestamptz,                      -- of the last request for a verification event
  created_at           timestamptz NOT NULL DEFAULT now(),
  updated_at           timestamptz NOT NULL DEFAULT now(),
  CHECK ((method = 'push') = (endpoint_url IS NOT NULL))
);
CREATE INDEX signal_streams_org ON signal_streams (org_id);

-- The people whom a receiver removed from its stream. All others are in it who signed in to the application.
CREATE TABLE signal_removed_subjects (
  stream_id uuid NOT NULL REFERENCES signal_streams (id) ON DELETE CASCADE,
  user_id   uuid NOT NULL,                               -- no foreign key: the end of an account waits for no receiver
  PRIMARY KEY (stream_id, user_id)
);
CREATE INDEX signal_removed_subjects_user ON signal_removed_subjects (user_id);

-- The queue. The transaction of what happened writes the rows. No foreign keys: an event outlives its user, and the end of an
-- access waits for no change of a stream. Events of a stream that is gone are never sent; the clean-up deletes them.
CREATE TABLE signal_events (
  id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream_id       uuid        NOT NULL,
  subject_id      uuid        NOT NULL,                  -- the user, or the stream itself; events of a subject go out in order
  subject_email   text,                                  -- for an application that names people by their address
  type            text        NOT NULL,
  body            jsonb       NOT NULL DEFAULT '{}',
  jti             uuid        NOT NULL DEFAULT gen_random_uuid(),
  made_in         xid8        NOT NULL DEFAULT pg_current_xact_id(),
  txn             uuid        NOT NULL DEFAULT md5(pg_current_xact_id()::text || ' ' || now()::text)::uuid,
  created_at      timestamptz NOT NULL DEFAULT now(),
  lease           int         NOT NULL DEFAULT 0,        -- counts the tries; a try settles only its own lease
  tries           int         NOT NULL DEFAULT 0,        -- since the event was made or repeated
  refusals        int         NOT NULL DEFAULT 0,        -- the answers 400 among them
  next_attempt_at timestamptz NOT NULL DEFAULT '-infinity',
  give_up_at      timestamptz,                           -- a day after the first try
  dead_at         timestamptz,                           -- a dead letter since then
  last_result     text
);
CREATE INDEX signal_events_waiting ON signal_events (stream_id, next_attempt_at, id) WHERE dead_at IS NULL;
CREATE INDEX signal_events_order ON signal_events (stream_id, subject_id, id) WHERE dead_at IS NULL;
CREATE INDEX signal_events_stream ON signal_events (stream_id, id);
CREATE INDEX signal_events_jti ON signal_events (stream_id, jti);
CREATE INDEX signal_events_dead ON signal_events (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX signal_events_age ON signal_events (created_at);

-- Wakes the senders of all replicas, and the polls that wait, at the commit.
CREATE FUNCTION announce_signals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM made) THEN PERFORM pg_notify('signal_events', ''); END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER announce AFTER INSERT ON signal_events REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION announce_signals();

-- Queues an event about a user for each stream of the organization that delivers the type, whose application got a grant of the
-- user (in a session, or in sessions of a key), and that did not remove the user. One end of sessions is told once in a
-- transaction, because it names the person alone.
CREATE FUNCTION queue_signal(of_user uuid, of_org uuid, of_email text, of_type text, of_body jsonb,
                             of_sid uuid DEFAULT NULL, of_key uuid DEFAULT NULL, of_client text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  -- The cause that the transaction noted: who ended the access, and why.
  cause jsonb := CASE WHEN of_type IN ('session-revoked', 'account-disabled', 'account-purged') OR of_body ->> 'change_type' = 'revoke'
                      THEN nullif(current_setting('svc.signal_cause', true), '')::jsonb END;
BEGIN
  IF NOT EXISTS (SELECT FROM signal_streams WHERE org_id = of_org) THEN RETURN; END IF;
  INSERT INTO signal_events (stream_id, subject_id, subject_email, type, body)
  SELECT s.id, of_user, CASE WHEN r.subject_format = 'email' THEN of_email END, of_type, of_body || coalesce(cause, '{}')
  FROM signal_streams s JOIN signal_receivers r ON r.client_id = s.client_id
  WHERE s.org_id = of_org AND s.status <> 'disabled' AND of_type = ANY (s.events)
    AND (of_client IS NULL OR s.client_id = of_client)
    AND EXISTS (
      SELECT FROM client_sign_ins i
      WHERE i.user_id = of_user AND i.client_id = s.client_id AND i.last_at > now() - interval '400 days'
        AND (of_sid IS NULL OR i.sid = of_sid) AND (of_key IS NULL OR i.session_key = of_key))
    AND NOT EXISTS (SELECT FROM signal_removed_subjects x WHERE x.stream_id = s.id AND x.user_id = of_user)
    AND (of_type <> 'session-revoked' OR NOT EXISTS (
      SELECT FROM signal_events e
      WHERE e.stream_id = s.id AND e.subject_id = of_user AND e.type = of_type AND e.made_in = pg_current_xact_id()))
  ORDER BY s.id;
END $$;

-- Notes the cause of an end for the rest of the transaction, and tells the end of the users' sessions: of all, or of a key.
CREATE FUNCTION end_signals(of_cause jsonb, of_users uuid[], of_key uuid DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('svc.signal_cause', of_cause::text, true);
  IF NOT EXISTS (SELECT FROM signal_streams) THEN RETURN; END IF;
  PERFORM queue_signal(u.id, u.org_id, u.email, 'session-revoked', '{}', NULL, of_key)
  FROM (SELECT id, org_id, email FROM users WHERE id = ANY (of_users) ORDER BY id) u;
END $$;

-- Tells every stream that events may be lost, such as after a restore of a backup. Returns the number of streams.
CREATE FUNCTION announce_lost_signals(of_reason text) RETURNS bigint LANGUAGE sql AS $$
  WITH told AS (
    INSERT INTO signal_events (stream_id, subject_id, type, body)
    SELECT s.id, s.id, 'stream-updated', jsonb_build_object('status', s.status, 'reason', of_reason)
    FROM signal_streams s WHERE s.status <> 'disabled' ORDER BY s.id RETURNING 1)
  SELECT count(*) FROM told;
$$;

-- The end of sessions, in whatever way they end. A session that ends by its own time is not revoked.
CREATE FUNCTION signal_ended_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM signal_streams) THEN RETURN NULL; END IF;
  PERFORM queue_signal(e.user_id, e.org_id, e.email, 'session-revoked',
                       '{"initiating_entity": "user", "reason_admin": {"en": "The person ended the session."}}', e.sid)
  FROM (SELECT g.user_id, u.org_id, u.email, g.sid FROM gone g JOIN users u ON u.id = g.user_id
        WHERE g.sid IS NOT NULL AND g.expires_at > now() ORDER BY g.user_id, g.sid) e;
  RETURN NULL;
END $$;
CREATE TRIGGER signal_ended AFTER DELETE ON sessions REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION signal_ended_sessions();

-- The first grant of a session at an application.
CREATE FUNCTION signal_new_sign_ins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM signal_streams WHERE 'session-established' = ANY (events)) THEN RETURN NULL; END IF;
  PERFORM queue_signal(u.id, u.org_id, u.email, 'session-established',
                       '{"initiating_entity": "user", "reason_admin": {"en": "The person signed in to the application."}}',
                       m.sid, NULL, m.client_id)
  FROM made m JOIN users u ON u.id = m.user_id;
  RETURN NULL;
END $$;
CREATE TRIGGER signal_made AFTER INSERT ON client_sign_ins REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION signal_new_sign_ins();

-- Security keys that were added or removed. The keys of a deleted user are no change: the account is purged.
CREATE FUNCTION signal_body_of_key(attestation text, aaguid uuid, change text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object(
      'credential_type', CASE WHEN attestation = 'fido-u2f' THEN 'fido-u2f' ELSE 'fido2-roaming' END, 'change_type', change,
      'initiating_entity', 'user',
      'reason_admin', jsonb_build_object('en', CASE change WHEN 'create' THEN 'A security key was added.' ELSE 'A security key was removed.' END))
    || CASE WHEN attestation = 'fido-u2f' OR aaguid IS NULL THEN '{}' ELSE jsonb_build_object('fido2_aaguid', aaguid) END;
$$;
CREATE FUNCTION signal_added_keys() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM queue_signal(u.id, u.org_id, u.email, 'credential-change', signal_body_of_key(k.attestation, k.aaguid, 'create'))
  FROM made k JOIN users u ON u.id = k.user_id;
  RETURN NULL;
END $$;
CREATE TRIGGER signal_added AFTER INSERT ON authenticators REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION signal_added_keys();
CREATE FUNCTION signal_removed_keys() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM queue_signal(u.id, u.org_id, u.email, 'credential-change', signal_body_of_key(k.attestation, k.aaguid, 'revoke'))
  FROM gone k JOIN users u ON u.id = k.user_id;
  RETURN NULL;
END $$;
CREATE TRIGGER signal_removed AFTER DELETE ON authenticators REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION signal_removed_keys();

-- Accounts that were deactivated, activated or deleted.
CREATE FUNCTION signal_changed_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM queue_signal(NEW.id, NEW.org_id, NEW.email, CASE WHEN NEW.active THEN 'account-enabled' ELSE 'account-disabled' END,
    jsonb_build_object('initiating_entity', 'admin', 'reason_admin', jsonb_build_object('en',
      CASE WHEN NEW.active THEN 'The account was activated.' ELSE 'The account was deactivated.' END)));
  RETURN NULL;
END $$;
CREATE TRIGGER signal_changed AFTER UPDATE OF active ON users FOR EACH ROW
  WHEN (OLD.active IS DISTINCT FROM NEW.active) EXECUTE FUNCTION signal_changed_account();
CREATE FUNCTION signal_purged_accounts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM signal_streams) THEN RETURN NULL; END IF;
  PERFORM queue_signal(g.id, g.org_id, g.email, 'account-purged',
                       '{"initiating_entity": "admin", "reason_admin": {"en": "The account was removed."}}')
  FROM (SELECT id, org_id, email FROM gone ORDER BY id) g;
  DELETE FROM signal_removed_subjects x USING gone g WHERE x.user_id = g.id;
  RETURN NULL;
END $$;
CREATE TRIGGER signal_purged AFTER DELETE ON users REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION signal_purged_accounts();
