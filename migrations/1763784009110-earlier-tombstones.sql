-- The addresses of people that SCIM removed before, by the audit log, which keeps its acts for ever. In a transaction of its own: it may
-- read for long, and locks nothing that sign-ins need.
INSERT INTO scim_tombstones (org_id, email, created_at)
SELECT e.org_id, lower((e.details ->> 'email') COLLATE "C"), max(e.created_at)
FROM audit_events e JOIN organizations o ON o.id = e.org_id
WHERE e.class = 'admin' AND e.type = 'scim_operation' AND e.details ->> 'operation' = 'delete'
  AND e.details ->> 'resource_type' = 'User' AND e.details ->> 'email' IS NOT NULL
  AND NOT EXISTS (
    SELECT FROM users u WHERE u.org_id = e.org_id AND u.email = lower((e.details ->> 'email') COLLATE "C"))
GROUP BY 1, 2;
