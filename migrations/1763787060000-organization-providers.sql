-- An admin allows further identity providers for the organization, or withdraws one. The rows until now are of the founders.
ALTER TABLE organization_providers
  ADD COLUMN id       uuid    NOT NULL DEFAULT gen_random_uuid(),
  ADD COLUMN founding boolean NOT NULL DEFAULT true,
  ADD COLUMN added_by uuid; -- the admin, who may be gone; null for the provider of the founder
CREATE UNIQUE INDEX organization_providers_id ON organization_providers (id);

-- The tenant of an identity at an issuer that serves many: a withdrawal ends what was bound through one tenant. Until now a member
-- could only be bound through the one provider of the organization.
ALTER TABLE identities ADD COLUMN tenant text NOT NULL DEFAULT '';
UPDATE identities i SET tenant = p.tenant
FROM users u JOIN organization_providers p ON p.org_id = u.org_id
WHERE u.id = i.user_id AND p.issuer = i.issuer AND p.tenant <> '';
