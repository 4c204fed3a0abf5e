-- What an identity provider says of people and groups (RFC 7643): users keep it beside what the service itself knows.
ALTER TABLE users
  ADD COLUMN user_name   text,   -- as it was sent; somebody whom SCIM did not make goes by their e-mail
  ADD COLUMN external_id text,
  ADD COLUMN attributes  jsonb  NOT NULL DEFAULT '{}', -- everything else, by the one spelling of each attribute
  ADD COLUMN version     bigint NOT NULL DEFAULT 1,
  -- Several people may have no e-mail at all; an id is no address, so it takes none away.
  ADD COLUMN email_key   text GENERATED ALWAYS AS (coalesce(email, id::text)) STORED;

-- Of the same name: statements of the version before name it.
ALTER TABLE users
  DROP CONSTRAINT users_email,
  ADD CONSTRAINT users_email UNIQUE NULLS NOT DISTINCT (org_id, email_key);
CREATE INDEX users_org_email ON users (org_id, email);
-- Written as filters write it: case folds in ASCII alone, whatever the locale.
CREATE UNIQUE INDEX users_user_name ON users (org_id, lower(coalesce(user_name, email, id::text) COLLATE "C"))
  WHERE org_id IS NOT NULL;
CREATE INDEX users_external_id ON users (org_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX users_org ON users (org_id, id);
-- What e-mails equal, whose values are strings. Case folds in the text of the JSON: names of escapes are in lower case there.
-- Every change goes into the tree at once, so that no search has a list of pending ones to read.
CREATE INDEX users_email_values ON users
  USING gin ((lower(jsonb_path_query_array(attributes, '$.emails[*].value')::text COLLATE "C")::jsonb)) WITH (fastupdate = off);

CREATE TABLE groups (
  id           uuid        PRIMARY KEY,
  org_id       uuid        NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
  display_name text        NOT NULL,
  external_id  text,
  attributes   jsonb       NOT NULL DEFAULT '{}',
  version      bigint      NOT NULL DEFAULT 1,
  created_at   timestamptz NOT NULL DEFAULT now(),
  updated_at   timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX groups_display_name ON groups (org_id, lower(display_name COLLATE "C"));
CREATE INDEX groups_external_id ON groups (org_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX groups_org ON groups (org_id, id);

-- Who is in which group. Both are of one organization: only statements that compare it write here.
CREATE TABLE group_members (
  group_id uuid NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
  user_id  uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  PRIMARY KEY (group_id, user_id)
);
CREATE INDEX group_members_user ON group_members (user_id, group_id);

-- Whether an address is in a domain that the organization owns, or, of somebody without one, in a domain that nobody owns:
-- nothing is issued to anybody else.
CREATE FUNCTION is_own_address(org_id uuid, email text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT (SELECT d.org_id FROM organization_domains d
          WHERE d.domain = split_part($2, '@', -1) AND d.verified_at IS NOT NULL) IS NOT DISTINCT FROM $1
$$;
