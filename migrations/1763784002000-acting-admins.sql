-- Whether a user may act as an admin of their organization: an active admin whose address is in a domain that the organization
-- owns. The one predicate of the access rule, of every lock and of every search for the admins of an organization.
CREATE FUNCTION is_acting_admin(org_id uuid, email text, is_org_admin boolean, active boolean) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT coalesce($3 AND $4 AND $1 IS NOT NULL AND is_own_address($1, $2), false)
$$;
