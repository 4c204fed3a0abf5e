-- The further domains of an organization, which a DNS TXT record proves. The record's value has the token; the primary domain has none.
ALTER TABLE organization_domains
  ADD COLUMN token           text,
  ADD COLUMN added_by        uuid,                       -- the admin; may be removed
  ADD COLUMN unverified_at   timestamptz,                -- when the proof was lost; NULL for a domain that is or was never verified
  ADD COLUMN last_checked_at timestamptz,
  ADD COLUMN last_proven_at  timestamptz,                -- when the record was last seen
  ADD COLUMN next_check_at   timestamptz,                -- set for a verified domain with a token alone
  ADD COLUMN failures        integer NOT NULL DEFAULT 0; -- checks without the record since it was last seen
CREATE INDEX organization_domains_due ON organization_domains (org_id, domain) INCLUDE (next_check_at)
  WHERE next_check_at IS NOT NULL;

-- The domains that an organization has proven by DNS at any time. While no organization owns such a domain, a sign-in neither founds an
-- organization for it nor gives credentials to a user without one: only another proof by DNS opens it.
CREATE TABLE dns_proven_domains (
  domain          text        PRIMARY KEY,
  first_proven_at timestamptz NOT NULL DEFAULT now()
);

CREATE OR REPLACE FUNCTION address_ownership(org_id uuid, email text) RETURNS TABLE (is_own boolean) LANGUAGE sql STABLE ROWS 1 AS $$
  SELECT (SELECT d.org_id FROM organization_domains d
          WHERE d.domain = split_part($2, '@', -1) AND d.verified_at IS NOT NULL) IS NOT DISTINCT FROM $1
     AND ($1 IS NOT NULL OR NOT EXISTS (SELECT FROM dns_proven_domains p WHERE p.domain = split_part($2, '@', -1)))
$$;

-- The same as of this moment, not as of the start of the statement: for a statement that has waited for a lock, and has no session whose
-- deletion would tell it of the loss of a domain. VOLATILE, so that each call has its own snapshot.
CREATE FUNCTION is_own_address_now(org_id uuid, email text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (SELECT o.is_own FROM address_ownership($1, $2) o);
END
$$;
