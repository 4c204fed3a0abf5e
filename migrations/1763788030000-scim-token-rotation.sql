-- The token that a new one replaces: the steps of a rotation survive a closed browser. A token names its creator as of its creation.
ALTER TABLE scim_tokens
  ADD COLUMN replaces         uuid REFERENCES scim_tokens (id) ON DELETE SET NULL,
  ADD COLUMN created_by_email text;
CREATE INDEX scim_tokens_replaces ON scim_tokens (replaces) WHERE replaces IS NOT NULL;

UPDATE scim_tokens t SET created_by_email = e.actor_email
FROM audit_events e
WHERE e.type = 'scim_token_created' AND e.org_id = t.org_id AND e.details ->> 'scim_token_id' = t.id::text;
