-- Clients that registered themselves: the network that each came from, and whether a user ever consented to it. A network may
-- have a few that no user consented to; of all of those there is a limit too, at which the oldest is removed.
ALTER TABLE oauth_clients
  ADD COLUMN registered_from cidr,        -- of a dynamic client: an IPv4 address, or a /64 of IPv6
  ADD COLUMN consented_at    timestamptz; -- of a dynamic client: when a user consented to it for the first time

-- Until now it was not written down who consented: the clients that are there count as consented to.
UPDATE oauth_clients SET consented_at = now() WHERE kind = 'dynamic';

-- The network that an address counts as: itself, and of IPv6 its /64, which is what one subscriber has.
CREATE FUNCTION network_of(address inet) RETURNS cidr LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT network(set_masklen(address, CASE family(address) WHEN 4 THEN 32 ELSE 64 END))
$$;

CREATE INDEX oauth_clients_never_consented ON oauth_clients (created_at, id)
  WHERE kind = 'dynamic' AND consented_at IS NULL;
CREATE INDEX oauth_clients_of_network ON oauth_clients (registered_from)
  WHERE kind = 'dynamic' AND consented_at IS NULL;

-- Which user consented to which self-registered client, and when last: errors are sent to a client after that alone.
CREATE TABLE oauth_consents (
  user_id      uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  client_id    text        NOT NULL REFERENCES oauth_clients (id) ON DELETE CASCADE,
  consented_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, client_id)
);
CREATE INDEX oauth_consents_client ON oauth_consents (client_id);

INSERT INTO oauth_consents (user_id, client_id, consented_at)
SELECT g.user_id, g.client_id, max(g.created_at)
FROM oauth_grants g JOIN oauth_clients c ON c.id = g.client_id
WHERE c.kind = 'dynamic'
GROUP BY g.user_id, g.client_id;
