-- Organizations that have audit rows, after an organization and at most a number of them. The seal looks through all organizations in
-- pages: with 100,000 one statement took longer than the limit of 10 seconds.
CREATE FUNCTION audited_organizations_after(after uuid, most integer) RETURNS SETOF uuid
LANGUAGE sql STABLE SET enable_sort = off AS $$
  WITH RECURSIVE found (org_id, n) AS (
    (SELECT e.org_id, 1 FROM audit_events e WHERE e.org_id > after ORDER BY e.org_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.org_id FROM audit_events e WHERE e.org_id > f.org_id ORDER BY e.org_id LIMIT 1), f.n + 1
    FROM found f WHERE f.org_id IS NOT NULL AND f.n < most
  )
  SELECT f.org_id FROM found f WHERE f.org_id IS NOT NULL
$$;
