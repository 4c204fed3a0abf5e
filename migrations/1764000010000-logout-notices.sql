-- The id of a session that applications know: `sid` of OpenID Connect. It is neither the key nor the token of the session.
ALTER TABLE sessions ADD COLUMN sid uuid;
ALTER TABLE sessions ALTER COLUMN sid SET DEFAULT gen_random_uuid();

CREATE OR REPLACE VIEW oauth_holders AS
SELECT s.id AS session_id, s.token_hash, s.client_id AS session_client, s.level, s.authenticator_id, s.auth_time, s.amr,
       s.acr, s.expires_at, k.aaguid, u.id AS user_id, u.org_id, u.email, u.name, u.is_org_admin, s.sid
FROM sessions s
JOIN users u ON u.id = s.user_id
CROSS JOIN LATERAL address_ownership(u.org_id, u.email) o
LEFT JOIN authenticators k ON k.id = s.authenticator_id
WHERE s.level <> 'bootstrap' AND s.expires_at > now() AND u.active AND o.is_own;

-- Who is told: each client that got a grant, and with it an ID token, of a person in a session. An application keeps a session of
-- its own for days, so the row outlives session, grant and user. No foreign keys.
CREATE TABLE client_sign_ins (
  sid         uuid        NOT NULL,
  client_id   text        NOT NULL,
  user_id     uuid        NOT NULL,
  session_key uuid,                              -- the security key that opened the session
  last_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (sid, client_id)
);
CREATE INDEX client_sign_ins_user ON client_sign_ins (user_id, client_id, last_at);
CREATE INDEX client_sign_ins_last ON client_sign_ins (last_at);

-- Keeps the newest 20 sessions of each person at each client. It waits for no other statement that does the same.
CREATE FUNCTION keep_newest_sign_ins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM made) THEN RETURN NULL; END IF;
  DELETE FROM client_sign_ins r USING (
    SELECT o.sid, o.client_id
    FROM (SELECT DISTINCT user_id, client_id FROM made) m
    CROSS JOIN LATERAL (
      SELECT s.sid, s.client_id FROM client_sign_ins s WHERE s.user_id = m.user_id AND s.client_id = m.client_id
      ORDER BY s.last_at DESC, s.sid OFFSET 20) x
    JOIN client_sign_ins o ON o.sid = x.sid AND o.client_id = x.client_id
    FOR UPDATE OF o SKIP LOCKED
  ) beyond WHERE r.sid = beyond.sid AND r.client_id = beyond.client_id;
  RETURN NULL;
END $$;
CREATE TRIGGER keep_newest AFTER INSERT ON client_sign_ins REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION keep_newest_sign_ins();

-- The queue of logout tokens (OpenID Connect Back-Channel Logout 1.0). The transaction that ends the access writes the rows. No
-- foreign keys: a notice outlives its user and session, and the end of an access waits for no change of a client.
CREATE TABLE logout_notices (
  id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  client_id       text        NOT NULL,
  self_registered boolean     NOT NULL,
  tenant_id       uuid,                                  -- the organization or the owner, for fair turns
  user_id         uuid        NOT NULL,
  sid             uuid,                                  -- null: every session of the person
  made_in         xid8        NOT NULL DEFAULT pg_current_xact_id(),
  created_at      timestamptz NOT NULL DEFAULT now(),
  lease           int         NOT NULL DEFAULT 0,        -- counts the tries; a try settles only its own lease
  tries           int         NOT NULL DEFAULT 0,        -- since the notice was made or repeated
  refusals        int         NOT NULL DEFAULT 0,        -- the answers 400 among them
  next_attempt_at timestamptz NOT NULL DEFAULT '-infinity',
  give_up_at      timestamptz NOT NULL DEFAULT now() + interval '24 hours',
  dead_at         timestamptz,                           -- a dead letter since then
  last_result     text
);
CREATE INDEX logout_notices_waiting ON logout_notices (self_registered, client_id, next_attempt_at, id) WHERE dead_at IS NULL;
CREATE INDEX logout_notices_dead ON logout_notices (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX logout_notices_client ON logout_notices (client_id, id);
CREATE INDEX logout_notices_made_in ON logout_notices (made_in, sid);

-- Wakes the senders of all replicas at the commit.
CREATE FUNCTION announce_logout_notices() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM made) THEN PERFORM pg_notify('logout_notices', ''); END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER announce AFTER INSERT ON logout_notices REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION announce_logout_notices();

-- The end of sessions, in whatever way they end, so that no path can forget it. A session that ends by its own time is told to the
-- clients that asked for it. An end of the account may have queued the same notice in this transaction.
CREATE FUNCTION queue_ended_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO logout_notices (client_id, self_registered, tenant_id, user_id, sid)
  SELECT c.id, c.kind = 'dynamic', coalesce(c.org_id, c.owner_id), r.user_id, r.sid
  FROM gone g JOIN client_sign_ins r ON r.sid = g.sid JOIN oauth_clients c ON c.id = r.client_id
  WHERE c.metadata ? 'backchannel_logout_uri'
    AND (g.expires_at > now() OR c.metadata -> 'backchannel_logout_at_session_end' = 'true')
    AND NOT EXISTS (
      SELECT FROM logout_notices n
      WHERE n.made_in = pg_current_xact_id() AND n.sid = r.sid AND n.client_id = r.client_id)
  ORDER BY r.sid, c.id;
  RETURN NULL;
END $$;
CREATE TRIGGER queue_ended AFTER DELETE ON sessions REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION queue_ended_sessions();

-- A client that is removed is told nothing more.
CREATE FUNCTION drop_notices_of_client() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM logout_notices WHERE client_id = OLD.id;
  RETURN NULL;
END $$;
CREATE TRIGGER drop_notices AFTER DELETE ON oauth_clients FOR EACH ROW EXECUTE FUNCTION drop_notices_of_client();
