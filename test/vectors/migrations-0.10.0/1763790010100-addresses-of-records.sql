-- The addresses of the records that exist. In a transaction of its own, which reads for long and locks nothing that sign-ins need; the
-- trigger keeps what changes meanwhile.
INSERT INTO record_addresses AS a (user_id, org_id, address, rank)
SELECT u.id, u.org_id, n.address, min(n.rank)
FROM users u
CROSS JOIN LATERAL (
  SELECT o.address, o.rank FROM addresses_of_record(coalesce(u.user_name, u.email), u.attributes) o
  UNION ALL SELECT u.email, NULL WHERE u.email IS NOT NULL
) n
WHERE u.scim_managed AND u.org_id IS NOT NULL
GROUP BY u.id, u.org_id, n.address
ON CONFLICT (user_id, address) DO NOTHING;

-- Removals by earlier versions: the address and the identities of one user have the time of one transaction.
UPDATE scim_removed_identities i SET user_name = t.email, addresses = ARRAY[t.email]
FROM scim_tombstones t
WHERE t.org_id = i.org_id AND t.created_at = i.created_at AND i.removed_user IS NULL;
