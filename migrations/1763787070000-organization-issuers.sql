-- The document encryption keys: data keys of AES-256 that AWS KMS made, as KMS wrapped them. There is one for each KMS key
-- that SVC_DOCUMENT_KEY_KMS_KEY_ID named first. Without KMS a row opens nothing.
CREATE TABLE document_keys (
  id         uuid        PRIMARY KEY,
  kms_key_id text        NOT NULL UNIQUE,
  wrapped    bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- The labels of issuers: https://{label}.{host of the base URL}. A label that an organization once claimed stays its own for
-- ever: roles in AWS may still trust it, so no other organization may ever sign under it. No row is deleted.
CREATE TABLE organization_issuers (
  label        text        PRIMARY KEY CHECK (label ~ '^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$' AND label !~ '^..--'),
  org_id       uuid        REFERENCES organizations (id) ON DELETE SET NULL, -- NULL: the organization is gone
  claimed_at   timestamptz NOT NULL,
  released_at  timestamptz,
  active_since timestamptz, -- AWS tokens come from this issuer
  CHECK (active_since IS NULL OR released_at IS NULL)
);
-- An organization has one issuer, and at most a few earlier labels.
CREATE UNIQUE INDEX organization_issuers_current ON organization_issuers (org_id) WHERE released_at IS NULL;
CREATE INDEX organization_issuers_of ON organization_issuers (org_id);

-- The keys of issuers. The private part is sealed under a document key, and bound to organization, label and key id. It goes
-- with its organization, with the release of the label, and with the end of its publication.
CREATE TABLE organization_issuer_keys (
  kid             text        PRIMARY KEY, -- the thumbprint of RFC 7638
  org_id          uuid        NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
  label           text        NOT NULL REFERENCES organization_issuers (label),
  public_jwk      jsonb       NOT NULL,
  sealed          bytea       NOT NULL,
  document_key_id uuid        NOT NULL REFERENCES document_keys (id),
  created_at      timestamptz NOT NULL,
  signs_from      timestamptz NOT NULL,
  published_until timestamptz -- NULL: no later key replaces it
);
CREATE INDEX organization_issuer_keys_of ON organization_issuer_keys (label, signs_from);
CREATE INDEX organization_issuer_keys_over ON organization_issuer_keys (published_until) WHERE published_until IS NOT NULL;
CREATE INDEX organization_issuer_keys_sealed ON organization_issuer_keys (document_key_id);
