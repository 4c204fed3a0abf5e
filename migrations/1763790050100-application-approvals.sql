-- An admin approves the application of a member for the addresses that it has at that moment. The members of the organization then
-- sign in to it without a page that asks for consent. An application that an admin registers is approved by that.
ALTER TABLE oauth_clients
  ADD COLUMN approved_at   timestamptz, -- of an application; NULL: no admin has approved it
  ADD COLUMN approved_by   uuid,        -- the admin, who may be removed; NULL for an application of before
  ADD COLUMN approved_uris text[],      -- the redirect URIs that the approval covers
  ADD CONSTRAINT oauth_clients_approval_check CHECK ((approved_at IS NULL) = (approved_uris IS NULL));

-- The applications that are there count as approved, so that no application loses its silent sign-in with the upgrade.
UPDATE oauth_clients
SET approved_at = now(),
    approved_uris = ARRAY(SELECT jsonb_array_elements_text(coalesce(metadata -> 'redirect_uris', '[]')))
WHERE kind = 'application' AND org_id IS NOT NULL;

-- What a user consented to at an application of the own organization: it is asked for again where an application wants more, or has a
-- redirect URI that it did not have then.
ALTER TABLE oauth_consents
  ADD COLUMN scopes        text[] NOT NULL DEFAULT '{}',
  ADD COLUMN claims        text[] NOT NULL DEFAULT '{}',
  ADD COLUMN redirect_uris text[] NOT NULL DEFAULT '{}';
