-- batches of users by id where scim_managed
-- The addresses of the records that exist. The trigger keeps what changes meanwhile.
INSERT INTO record_addresses AS a (user_id, org_id, address, rank)
SELECT u.id, u.org_id, n.address, min(n.rank)
FROM users u
CROSS JOIN LATERAL (
  SELECT o.address, o.rank FROM addresses_of_record(coalesce(u.user_name, u.email), u.attributes) o
  UNION ALL SELECT u.email, NULL WHERE u.email IS NOT NULL
) n
WHERE u.id BETWEEN current_setting('migration.first')::uuid AND current_setting('migration.last')::uuid
  AND u.scim_managed AND u.org_id IS NOT NULL
GROUP BY u.id, u.org_id, n.address
ON CONFLICT (user_id, address) DO NOTHING;
