-- What this database is: which composition root made it (production, demo or test). One row for ever.
-- Production trusts only the vendor's pinned roots; a database that once trusted a software key must never serve it.
CREATE TABLE deployment (
  only_row    boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
  composition text        NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now()
);
