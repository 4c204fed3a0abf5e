import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';

const SIGN_IN_FIRST =
  'The database of this service has lost changes, so that your key alone is not enough once. Sign in at your identity provider first, then use your key.';

/**
 * The SQL of the time at which all access was last ended because the database had lost commits; no
 * row if that never happened.
 */
const RECONCILED = fragment`SELECT reconciled_at FROM database_identity WHERE reconciled_at IS NOT NULL`;

/**
 * Demands a sign-in at the identity provider in addition to the key. It does so at the first login
 * of a user after all access was ended because the database had lost commits.
 *
 * If the removal of a user is among the lost commits, the account and key of that user exist again.
 * SCIM does not send the removal a second time, but the identity provider refuses a removed user. A
 * session that is newer than the end of all access proves a sign-in at the provider. Without such a
 * sign-in, no login opens a session. The caller has locked the row of the user.
 *
 * @param sessionId the session of the ceremony; undefined for a login without a session
 * @throws DomainError sign_in_required
 */
export async function assertProviderSinceReconciliation(
  tx: EntityManager,
  userId: string,
  sessionId: string | undefined,
): Promise<void> {
  const [row] = await sql<{ refused: boolean }>(tx)`
    WITH reconciled AS (${RECONCILED}), proven AS (${noted(userId, sessionId ?? null)})
    SELECT EXISTS (SELECT FROM reconciled)
       AND NOT EXISTS (SELECT FROM proven)
       AND NOT EXISTS (SELECT FROM logins_since_reconciliation l JOIN reconciled r ON r.reconciled_at = l.reconciled_at
                       WHERE l.user_id = ${userId}) AS refused`;
  if (row?.refused === true) throw new DomainError('sign_in_required', SIGN_IN_FIRST);
}

/**
 * Records that a user enrolls a key in a session that an upstream login opened. {@link
 * assertProviderSinceReconciliation} counts this as a login with both provider and key. If no
 * commits were ever lost, nothing is recorded.
 */
export async function noteProviderLogin(
  tx: EntityManager,
  userId: string,
  sessionId: string,
): Promise<void> {
  await sql(tx)`WITH reconciled AS (${RECONCILED}) ${noted(userId, sessionId)}`;
}

/**
 * Returns the SQL that records a login with both identity provider and key. The session of the
 * ceremony must still be valid, and must have begun after the last end of all access because of
 * lost commits.
 */
function noted(userId: string, sessionId: string | null) {
  return fragment`
    INSERT INTO logins_since_reconciliation AS n (user_id, reconciled_at)
    SELECT ${userId}::uuid, r.reconciled_at FROM reconciled r
    JOIN sessions s ON s.id = ${sessionId}::uuid AND s.created_at > r.reconciled_at AND s.expires_at > now()
    WHERE coalesce(s.user_id, ${userId}::uuid) = ${userId}::uuid
    ON CONFLICT (user_id) DO UPDATE SET reconciled_at = EXCLUDED.reconciled_at
      WHERE n.reconciled_at <> EXCLUDED.reconciled_at
    RETURNING n.user_id`;
}
