-- The demand for a re-enrollment pass outlives the pass: its use ends it, or an admin. A row stays after its time, without a clean-up, and
-- its user enrolls with another pass only. Until now the demand ended with the time of the pass.

-- A user who has enrolled a key since then owes no pass.
DELETE FROM enrollment_passes p
WHERE p.expires_at <= now() AND EXISTS (SELECT FROM authenticators k WHERE k.user_id = p.user_id);

-- A user without a key whose last pass has expired unused owes one again: the clean-up has deleted the row, the audit log has the pass.
-- Revoked keys say that the user had enrolled after it. Events of enrollments may be deleted by age; those of revocations are not.
INSERT INTO enrollment_passes (user_id, hash, created_by, created_at, expires_at)
SELECT u.id, NULL, given.actor_id, given.created_at, given.created_at + interval '24 hours'
FROM users u
CROSS JOIN LATERAL (
  SELECT e.id, e.actor_id, e.created_at FROM audit_events e
  WHERE e.subject_id = u.id AND e.type = 'enrollment_pass_created'
  ORDER BY e.id DESC LIMIT 1
) given
WHERE NOT EXISTS (SELECT FROM authenticators k WHERE k.user_id = u.id)
  AND NOT EXISTS (SELECT FROM audit_events later
                  WHERE later.subject_id = u.id AND later.id > given.id
                    AND (later.type IN ('enrollment', 'enrollment_pass_used')
                         OR (later.type = 'admin_revoke_credentials' AND coalesce((later.details ->> 'keys')::int, 0) > 0)))
ON CONFLICT (user_id) DO NOTHING;

-- The clean-up reads it no more.
DROP INDEX IF EXISTS enrollment_passes_expires_at;
