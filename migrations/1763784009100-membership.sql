-- Provisioning is a setting: in an `open` organization people are made by signing in, in a `scim_only` one SCIM alone makes them.
ALTER TABLE organizations
  ADD COLUMN membership text NOT NULL DEFAULT 'open' CHECK (membership IN ('open', 'scim_only'));
UPDATE organizations SET membership = 'scim_only' WHERE provisioned;

-- The version before reads and writes the mark alone, while replicas of both run: each of the two columns follows the other.
CREATE FUNCTION organizations_membership() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    NEW.provisioned := NEW.provisioned OR NEW.membership = 'scim_only';
    NEW.membership := CASE WHEN NEW.provisioned THEN 'scim_only' ELSE 'open' END;
  ELSIF NEW.membership <> OLD.membership THEN
    NEW.provisioned := NEW.membership = 'scim_only';
  ELSIF NEW.provisioned <> OLD.provisioned THEN
    NEW.membership := CASE WHEN NEW.provisioned THEN 'scim_only' ELSE 'open' END;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER organizations_membership BEFORE INSERT OR UPDATE OF membership, provisioned ON organizations
  FOR EACH ROW EXECUTE FUNCTION organizations_membership();

-- The addresses of people that SCIM removed: a sign-in makes none of them again in either membership, until SCIM does. A write of
-- SCIM lifts the tombstone for the user that it names, and for no other.
CREATE TABLE scim_tombstones (
  org_id     uuid        NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
  email      text        NOT NULL CHECK (email = lower(email COLLATE "C")),
  lifted_for uuid,       -- no foreign key: the tombstone outlives the user
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, email)
);

-- Who those people are at their identity providers: another address makes none of them again either.
CREATE TABLE scim_removed_identities (
  org_id     uuid        NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
  issuer     text        NOT NULL,
  subject    text        NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, issuer, subject)
);
