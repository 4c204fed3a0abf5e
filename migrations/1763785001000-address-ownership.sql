-- Whether an e-mail address is in a domain that the organization owns or, without an organization, in a domain that no organization
-- owns. This is the one spelling of the rule: PostgreSQL puts the function into the statements that read it in their FROM.
CREATE FUNCTION address_ownership(org_id uuid, email text) RETURNS TABLE (is_own boolean) LANGUAGE sql STABLE ROWS 1 AS $$
  SELECT (SELECT d.org_id FROM organization_domains d
          WHERE d.domain = split_part($2, '@', -1) AND d.verified_at IS NOT NULL) IS NOT DISTINCT FROM $1
$$;

-- The same for a single address, where a statement needs an expression.
CREATE OR REPLACE FUNCTION is_own_address(org_id uuid, email text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT o.is_own FROM address_ownership($1, $2) o
$$;

CREATE OR REPLACE VIEW oauth_holders AS
SELECT s.id AS session_id, s.token_hash, s.client_id AS session_client, s.level, s.authenticator_id, s.auth_time, s.amr,
       s.acr, s.expires_at, k.aaguid, u.id AS user_id, u.org_id, u.email, u.name, u.is_org_admin
FROM sessions s
JOIN users u ON u.id = s.user_id
CROSS JOIN LATERAL address_ownership(u.org_id, u.email) o
LEFT JOIN authenticators k ON k.id = s.authenticator_id
WHERE s.level <> 'bootstrap' AND s.expires_at > now() AND u.active AND o.is_own;
