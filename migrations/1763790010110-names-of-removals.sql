-- Removals by earlier versions: the address and the identities of one user have the time of one transaction. Issuance never reads these
-- rows, and a removal writes only its own.
UPDATE scim_removed_identities i SET user_name = t.email, addresses = ARRAY[t.email]
FROM scim_tombstones t
WHERE t.org_id = i.org_id AND t.created_at = i.created_at AND i.removed_user IS NULL AND i.addresses IS NULL;
