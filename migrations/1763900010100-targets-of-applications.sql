-- batches of oauth_clients by id where kind IN ('application', 'kubernetes')
-- The applications that exist. The trigger keeps what changes meanwhile.
INSERT INTO access_targets (org_id, kind, client_id)
SELECT c.org_id, 'application', c.id
FROM oauth_clients c
WHERE c.id BETWEEN current_setting('migration.first') AND current_setting('migration.last')
  AND c.kind IN ('application', 'kubernetes') AND c.org_id IS NOT NULL
ON CONFLICT (client_id) DO NOTHING;
