-- How an organization came to its domain. A primary domain may be no more than asserted by the sign-in of the founder; it is proven
-- by a DNS record, by the operator's assignment, or where the setting `_DOMAINS` of the founding provider names it.
ALTER TABLE organization_domains
  ADD COLUMN assigned_at timestamptz,                    -- when the operator assigned the domain; it is not checked
  ADD COLUMN is_vouched  boolean NOT NULL DEFAULT false; -- a primary domain that `_DOMAINS` of the founding provider names

-- A primary domain may be proven by a record, too: its value has 244 random bits.
UPDATE organization_domains
SET token = translate(trim(TRAILING '=' FROM encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64')),
                      '+/', '-_')
WHERE is_primary AND token IS NULL;

-- The domains that organizations have proven. This is the one spelling of the rule. A domain with a next check is proven by its record.
CREATE VIEW proven_domains AS
  SELECT org_id, domain FROM organization_domains
  WHERE verified_at IS NOT NULL AND (next_check_at IS NOT NULL OR assigned_at IS NOT NULL OR is_vouched);
