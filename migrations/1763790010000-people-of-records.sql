-- The row of an organization that every act locks first which founds, enrolls, parts or readmits a member, or changes an address or
-- `active` of one. Nothing refers to this row, so that issuance and the audit log never wait for it.
CREATE TABLE directory_locks (
  org_id uuid PRIMARY KEY REFERENCES organizations (id) ON DELETE CASCADE
);
CREATE FUNCTION organizations_directory_lock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO directory_locks (org_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER organizations_directory_lock AFTER INSERT ON organizations
  FOR EACH ROW EXECUTE FUNCTION organizations_directory_lock();
INSERT INTO directory_locks (org_id) SELECT id FROM organizations ON CONFLICT DO NOTHING;

-- The addresses of users that SCIM manages: those that a user has, in the order in which one becomes the address to sign in with, and
-- those that the user ever had.
CREATE TABLE record_addresses (
  user_id  uuid     NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  org_id   uuid     NOT NULL,
  address  text     NOT NULL CHECK (address = lower(address COLLATE "C")),
  rank     smallint,                       -- as `addresses_of_record` has it; NULL for an address that the user only had
  parted   boolean  NOT NULL DEFAULT false, -- an admin parted two people: the address decides nothing for this user any more
  withheld boolean  NOT NULL DEFAULT false, -- another user has it to sign in with, until an admin gives it to this one
  PRIMARY KEY (user_id, address)
);
CREATE INDEX record_addresses_address ON record_addresses (org_id, address);

-- The users who are one person with a user that SCIM manages, or may be. The end of the record ends its twins in the same way; the end
-- of either of two linked records deactivates the other one.
CREATE TABLE record_ties (
  record_id  uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  user_id    uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  org_id     uuid        NOT NULL,
  kind       text        NOT NULL CHECK (kind IN ('twin', 'link')),
  address    text        NOT NULL,               -- the address that tied them
  ended      boolean     NOT NULL DEFAULT false, -- the end of the record deactivated the twin, and its activation revives the twin
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (record_id, user_id),
  CHECK (record_id <> user_id)
);
CREATE INDEX record_ties_user ON record_ties (user_id);
CREATE INDEX record_ties_org ON record_ties (org_id, user_id) WHERE kind = 'twin';

-- When a record took over a member who had signed in before.
ALTER TABLE users ADD COLUMN taken_over_at timestamptz;
-- The id that a key states as its user, where the key has moved to another id with its owner.
ALTER TABLE authenticators ADD COLUMN handle_id uuid;

-- What an admin removed stays out until an admin readmits it. Identities come back with the userName or externalId of the removed user.
ALTER TABLE scim_tombstones ADD COLUMN by_admin boolean NOT NULL DEFAULT false;
ALTER TABLE scim_removed_identities
  ADD COLUMN by_admin     boolean NOT NULL DEFAULT false,
  ADD COLUMN removed_user uuid,   -- no foreign key: the row outlives the user; NULL for a removal by an earlier version
  ADD COLUMN user_name    text,
  ADD COLUMN external_id  text,
  ADD COLUMN addresses    text[], -- the addresses that the user ever had
  ADD COLUMN lifted_for   uuid;
CREATE INDEX scim_removed_identities_user_name ON scim_removed_identities (org_id, lower(user_name COLLATE "C"));
CREATE INDEX scim_removed_identities_external_id ON scim_removed_identities (org_id, external_id);

-- The normalized address of a text, as `parseEmailAddress` finds it; NULL for a text that is none.
CREATE FUNCTION parse_email_address(raw text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN length(a) <= 254 AND strpos(a, '@') <= 65
    AND a ~ '^[a-z0-9.!#$%&''*+/=?^_`{|}~-]+@[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$'
    THEN a END
  FROM (SELECT lower(btrim(raw, U&'\0009\000A\000B\000C\000D\0020\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A\2028\2029\202F\205F\3000\FEFF') COLLATE "C")) t (a)
$$;

-- The addresses that a record has, as `addressesOf` finds them: the userName (0), the primary e-mail (1), the only e-mail of type `work`
-- (2) or several (3 and more); if none of these is an address, the first e-mail that is one (1000).
CREATE FUNCTION addresses_of_record(user_name text, attributes jsonb) RETURNS TABLE (address text, rank smallint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  WITH listed AS (
    SELECT parse_email_address(e.value ->> 'value') AS address, e.place,
           e.value -> 'primary' = 'true' IS TRUE AS is_primary,
           lower((e.value ->> 'type') COLLATE "C") = 'work' IS TRUE AS is_work
    FROM jsonb_array_elements(CASE jsonb_typeof($2 -> 'emails') WHEN 'array' THEN $2 -> 'emails' ELSE '[]' END)
         WITH ORDINALITY AS e (value, place)
    WHERE jsonb_typeof(e.value -> 'value') = 'string'
  ), named AS (
    SELECT parse_email_address($1) AS address, 0 AS rank
    UNION ALL
    SELECT l.address,
           CASE WHEN l.is_primary THEN 1
                WHEN NOT l.is_work THEN 999 + l.place
                WHEN (SELECT count(DISTINCT w.address) FROM listed w WHERE w.is_work) = 1 THEN 2
                ELSE least(2 + l.place, 999) END
    FROM listed l
  ), ranked AS (
    SELECT n.address, min(n.rank) AS rank FROM named n WHERE n.address IS NOT NULL GROUP BY n.address
  )
  SELECT r.address, least(r.rank, 1000)::smallint FROM ranked r
  WHERE r.rank < 1000 OR r.rank = (SELECT min(first.rank) FROM ranked first)
$$;

-- Keeps the addresses of records, whichever version of the service writes.
CREATE FUNCTION note_record_addresses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  WITH named AS (
    SELECT n.address, min(n.rank) AS rank
    FROM (SELECT a.address, a.rank FROM addresses_of_record(coalesce(NEW.user_name, NEW.email), NEW.attributes) a
          UNION ALL SELECT NEW.email, NULL WHERE NEW.email IS NOT NULL) n
    GROUP BY n.address
  ), had AS (
    UPDATE record_addresses a SET rank = NULL
    WHERE a.user_id = NEW.id AND a.rank IS NOT NULL AND a.address NOT IN (SELECT n.address FROM named n)
  )
  INSERT INTO record_addresses AS a (user_id, org_id, address, rank)
  SELECT NEW.id, NEW.org_id, n.address, n.rank FROM named n
  ON CONFLICT (user_id, address) DO UPDATE SET rank = CASE WHEN a.parted THEN NULL ELSE EXCLUDED.rank END
    WHERE a.rank IS DISTINCT FROM EXCLUDED.rank;
  RETURN NULL;
END $$;
CREATE TRIGGER record_addresses_added AFTER INSERT ON users FOR EACH ROW
  WHEN (NEW.scim_managed AND NEW.org_id IS NOT NULL) EXECUTE FUNCTION note_record_addresses();
CREATE TRIGGER record_addresses_changed AFTER UPDATE OF user_name, email, attributes, scim_managed ON users FOR EACH ROW
  WHEN (NEW.scim_managed AND NEW.org_id IS NOT NULL
    AND (NOT OLD.scim_managed OR OLD.user_name IS DISTINCT FROM NEW.user_name OR OLD.email IS DISTINCT FROM NEW.email
      OR OLD.attributes -> 'emails' IS DISTINCT FROM NEW.attributes -> 'emails'))
  EXECUTE FUNCTION note_record_addresses();
