-- Members who signed in themselves, and whose address a record has: they become twins of the record, which end with it.
INSERT INTO record_ties (record_id, user_id, org_id, kind, address)
SELECT a.user_id, u.id, u.org_id, 'twin', a.address
FROM record_addresses a
JOIN users u ON u.org_id = a.org_id AND u.email = a.address AND NOT u.scim_managed
WHERE a.rank IS NOT NULL AND a.user_id <> u.id
ON CONFLICT DO NOTHING;

-- A twin has no place among the userNames of records.
UPDATE users SET user_name = id::text
WHERE id IN (SELECT user_id FROM record_ties WHERE kind = 'twin') AND NOT scim_managed;
