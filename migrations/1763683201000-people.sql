-- Organizations and people. An organization is made by the first person of an e-mail domain and belongs to the
-- identity provider and tenant that made it.
CREATE TABLE organizations (
  id               uuid        PRIMARY KEY,
  name             text        NOT NULL,
  provisioned      boolean     NOT NULL DEFAULT false, -- set by the first SCIM token, for good
  admin_claimed_at timestamptz,                        -- the first admin is decided once, by one conditional UPDATE
  created_at       timestamptz NOT NULL DEFAULT now()
);

-- A domain an organization owns: its primary one, or one proven by DNS. A verified domain has one owner.
CREATE TABLE organization_domains (
  org_id      uuid        NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
  domain      text        NOT NULL CHECK (domain = lower(domain COLLATE "C")),
  is_primary  boolean     NOT NULL DEFAULT false,
  verified_at timestamptz,
  created_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, domain)
);
CREATE UNIQUE INDEX organization_domains_owner ON organization_domains (domain) WHERE verified_at IS NOT NULL;

-- The identity providers (issuer, and tenant where the issuer serves many) an organization accepts sign-ins through.
CREATE TABLE organization_providers (
  org_id     uuid        NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
  issuer     text        NOT NULL,
  tenant     text        NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, issuer, tenant)
);

CREATE TABLE users (
  id           uuid        PRIMARY KEY,
  org_id       uuid        REFERENCES organizations (id),
  email        text        CHECK (email = lower(email COLLATE "C")),
  name         text,
  is_org_admin boolean     NOT NULL DEFAULT false,
  active       boolean     NOT NULL DEFAULT true,
  scim_managed boolean     NOT NULL DEFAULT false,
  created_at   timestamptz NOT NULL DEFAULT now(),
  updated_at   timestamptz NOT NULL DEFAULT now(),
  -- Unique within the organization, and among people without one.
  CONSTRAINT users_email UNIQUE NULLS NOT DISTINCT (org_id, email)
);

-- Who a user is at an identity provider. The first sign-in binds; a bound subject is never bound again.
CREATE TABLE identities (
  issuer     text        NOT NULL,
  subject    text        NOT NULL,
  user_id    uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_user ON identities (user_id);
