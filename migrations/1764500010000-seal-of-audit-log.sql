-- The seal of the audit log: a Merkle tree (RFC 9162) of each organization, and one of the deployment with the id 00000000-…, for each
-- epoch. A tree takes leaves while its epoch lasts, and ends at its last checkpoint.
CREATE TABLE audit_trees (
  tree         uuid        NOT NULL,
  epoch        bigint      NOT NULL,
  previous     text,                 -- the last checkpoint of the tree before, which the first leaf names
  from_epoch   bigint      NOT NULL, -- the tree has the rows after this place
  from_xid     xid8        NOT NULL,
  from_id      uuid        NOT NULL,
  size         bigint      NOT NULL,
  range        bytea       NOT NULL, -- the hashes of the complete subtrees that make up the tree, the largest first
  last_epoch   bigint      NOT NULL, -- the place of the last row
  last_xid     xid8        NOT NULL,
  last_id      uuid        NOT NULL,
  signed_size  bigint      NOT NULL DEFAULT 0, -- of the last checkpoint
  signed_at    timestamptz,
  signed_epoch bigint      NOT NULL, -- the place of the last row of the last checkpoint
  signed_xid   xid8        NOT NULL,
  signed_id    uuid        NOT NULL,
  PRIMARY KEY (tree, epoch)
);

-- The entries of the leaves, 57 bytes each, of at most one tile of 256 leaves. `batch` is the first leaf that was appended together with
-- them, and the place is that of the last row of the batch.
CREATE TABLE audit_leaves (
  tree       uuid   NOT NULL,
  epoch      bigint NOT NULL,
  first      bigint NOT NULL,
  batch      bigint NOT NULL,
  entries    bytea  NOT NULL,
  last_epoch bigint NOT NULL,
  last_xid   xid8   NOT NULL,
  last_id    uuid   NOT NULL,
  PRIMARY KEY (tree, epoch, first)
);
-- Hashes cannot be compressed.
ALTER TABLE audit_leaves ALTER COLUMN entries SET STORAGE EXTERNAL;

-- The hashes of complete subtrees of 256 leaves (level 8), 65,536 (16) and so on.
CREATE TABLE audit_nodes (
  tree  uuid     NOT NULL,
  epoch bigint   NOT NULL,
  level smallint NOT NULL,
  n     bigint   NOT NULL,
  hash  bytea    NOT NULL,
  PRIMARY KEY (tree, epoch, level, n)
);

CREATE TABLE audit_checkpoints (
  tree         uuid        NOT NULL,
  epoch        bigint      NOT NULL,
  size         bigint      NOT NULL,
  range        bytea       NOT NULL,
  note         text        NOT NULL, -- the signed text
  signed_at    timestamptz NOT NULL,
  published_at timestamptz,
  PRIMARY KEY (tree, epoch, size)
);
CREATE INDEX audit_checkpoints_to_publish ON audit_checkpoints (signed_at) WHERE published_at IS NULL;

-- The keys that have signed checkpoints, and the private part of the one that the service made, sealed under the root secret.
CREATE TABLE audit_seal_keys (
  verifier text        PRIMARY KEY,
  sealed   text,
  made_at  timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX audit_seal_keys_made ON audit_seal_keys ((true)) WHERE sealed IS NOT NULL;

-- The replica that begins a round of sealing, or goes on with one, writes the time.
CREATE TABLE audit_seal (
  only_row boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
  round_at timestamptz NOT NULL
);
INSERT INTO audit_seal (round_at) VALUES ('epoch');
